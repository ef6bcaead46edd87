#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// How tokens become text: each token by itself, as its place has it, then the ends of the joined text.
struct Decoder {
  std::vector<std::function<void(std::string& token, TokenPlace place)>> steps;
  TextEnds ends;
  bool byte_level = false;  // tokens are in GPT-2's spelling of bytes

  std::string token(std::string text, TokenPlace place = {}) const;
};

// "decoder" of a tokenizer.json: ByteLevel, ByteFallback, Metaspace, Replace, WordPiece, BPEDecoder, Fuse, Strip,
// Sequence or null, which puts a space between tokens. Bytes stay as they are where they are no well-formed UTF-8.
// Throws InputError naming any other component, or an order of them that is not supported.
Decoder parse_decoder(const nlohmann::json& json, const std::string& where);

// Byte of a token spelled "<0x0A>", -1 for any other.
int byte_fallback_value(const std::string& token);

}  // namespace collimate::text
