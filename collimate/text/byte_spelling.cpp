#include "collimate/text/byte_spelling.h"

#include <array>
#include <cstdint>

#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

// Printable Latin-1 bytes stand for themselves; the others are numbered upwards from U+0100 (GPT-2, encoder.py).
std::array<std::string, 256> make_spelling() {
  std::array<std::string, 256> spelling;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_utf8(spelling[byte], printable ? byte : next++);
  }
  return spelling;
}

const std::array<std::string, 256>& spelling() {
  static const std::array<std::string, 256> table = make_spelling();
  return table;
}

// Returns the byte for each code point below 512, -1 where there is none.
const std::array<int, 512>& inverse_spelling() {
  static const std::array<int, 512> table = [] {
    std::array<int, 512> inverse{};
    inverse.fill(-1);
    for (int byte = 0; byte < 256; ++byte) inverse[utf8_code_point(spelling()[byte])] = byte;
    return inverse;
  }();
  return table;
}

}  // namespace

std::string to_byte_spelling(unsigned char byte) { return spelling()[byte]; }

void append_byte_spelling(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) out += spelling()[static_cast<unsigned char>(byte)];
}

std::string byte_spelling_of(std::string_view bytes) {
  std::string out;
  append_byte_spelling(out, bytes);
  return out;
}

std::string from_byte_spelling(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t length = utf8_length(rest);
    if (length == 0) return text;
    const uint32_t code_point = utf8_code_point(rest);
    if (code_point >= 512 || inverse_spelling()[code_point] < 0) return text;
    out += static_cast<char>(inverse_spelling()[code_point]);
    at += length;
  }
  return out;
}

}  // namespace collimate::text
