#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::text {

// How tokens become text: each token by itself, then a leading space stripped once at the start of the whole text.
struct Decoder {
  std::vector<std::function<void(std::string& token)>> steps;
  std::string strip_start;  // removed once where the text starts with it

  std::string token(std::string text) const;
};

// "decoder" of a tokenizer.json: ByteLevel, ByteFallback, Metaspace, Replace, Fuse, Strip, Sequence or null.
// Throws InputError naming any other component.
Decoder parse_decoder(const nlohmann::json& json, const std::string& where);

// GPT-2's spelling of bytes as printable characters. Each is the inverse of the other; a text that is not wholly in
// that spelling is returned unchanged by `from_byte_spelling`.
std::string to_byte_spelling(unsigned char byte);
std::string from_byte_spelling(const std::string& text);

// Byte of a token spelled "<0x0A>", -1 for any other.
int byte_fallback_value(const std::string& token);

}  // namespace collimate::text
