#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Turns tokens into text: `steps` change each token by itself, which may depend on its place, and `ends` are taken off
// the joined text.
struct Decoder {
  std::vector<std::function<void(std::string& token, TokenPlace place)>> steps;
  TextEnds ends;
  bool byte_level = false;  // tokens are in GPT-2's spelling of bytes

  std::string token(std::string text, TokenPlace place = {}) const;
};

// Reads "decoder" of a tokenizer.json: ByteLevel, ByteFallback, Metaspace, Replace, WordPiece, BPEDecoder, Fuse, Strip,
// Sequence or null, which puts a space between tokens. Bytes that are not well-formed UTF-8 stay as they are. Throws
// InputError, which names it, for any other component, and for an order of components that is not supported.
Decoder parse_decoder(const nlohmann::json& json, const std::string& where);

// Returns the byte of a token spelled "<0x0A>", -1 for any other token.
int byte_fallback_value(const std::string& token);

}  // namespace collimate::text
