#include "collimate/text/utf8.h"

#include <utf8proc.h>

#include <cstring>

namespace collimate::text {
namespace {

// Holds how many bytes a lead byte announces (0: not a lead byte), and the range that its second byte must lie in (RFC
// 3629 table).
struct Lead {
  size_t length;
  unsigned char low, high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
  }
  if (byte < 0xF5) {
    return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

// Returns how many of the character's bytes at the start of `text` are well-formed so far.
size_t well_formed_prefix(std::string_view text, const Lead& lead) {
  size_t good = 1;
  while (good < lead.length && good < text.size()) {
    const auto byte = static_cast<unsigned char>(text[good]);
    const unsigned char low = good == 1 ? lead.low : 0x80;
    const unsigned char high = good == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) break;
    ++good;
  }
  return good;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return 0;
  return well_formed_prefix(text, lead) == lead.length ? lead.length : 0;
}

bool utf8_unfinished(std::string_view text) {
  if (text.empty()) return false;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  return text.size() < lead.length && well_formed_prefix(text, lead) == text.size();
}

uint32_t utf8_code_point(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  switch (utf8_length(text)) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    case 4:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
    default:
      return 0xFFFD;
  }
}

int character_width(uint32_t code_point) { return utf8proc_charwidth(static_cast<utf8proc_int32_t>(code_point)); }

void append_utf8(std::string& out, uint32_t code_point) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0 | (code_point >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code_point >> 18));
    tail(12), tail(6), tail(0);
  }
}

size_t valid_run(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (text.size() - at >= 8) {  // eight ASCII bytes at once
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080ULL) == 0) {
        at += 8;
        continue;
      }
    }
    const size_t length = utf8_length(text.substr(at, 4));
    if (length == 0) break;
    at += length;
  }
  return at;
}

bool is_valid_utf8(std::string_view text) { return valid_run(text) == text.size(); }

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t good = valid_run(text);
    out.append(text.substr(0, good));
    text.remove_prefix(good);
    if (!text.empty()) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace collimate::text
