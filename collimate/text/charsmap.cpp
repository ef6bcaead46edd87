#include "collimate/text/charsmap.h"

#include <utf8proc.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/text/characters.h"

namespace collimate::text {
namespace {

static_assert(std::endian::native == std::endian::little, "charsmaps are little-endian");

// A unit of a Darts-clone array holds a label, the offset of its children, and whether a key ends here; or it holds a
// value.
uint32_t label_of(uint32_t unit) { return unit & (1U << 31 | 0xFF); }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }
bool ends_key(uint32_t unit) { return ((unit >> 8) & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & ((1U << 31) - 1); }

// Returns a character at which graphemes end where they end at this one: for utf8proc marks of Unicode 17 are no
// characters yet.
utf8proc_int32_t known_character(uint32_t code_point) {
  constexpr uint32_t kMark = 0x300;
  const bool mark = (code_point >= 0x1ACF && code_point <= 0x1ADD) || (code_point >= 0x1AE0 && code_point <= 0x1AEB);
  return static_cast<utf8proc_int32_t>(mark ? kMark : stand_in(code_point));
}

// Returns the bytes of the grapheme at the start of `text`, which is well-formed UTF-8.
size_t grapheme_size(std::string_view text) {
  Character character = character_at(text, 0);
  size_t size = character.size;
  utf8proc_int32_t state = 0;
  while (size < text.size()) {
    const Character next = character_at(text, size);
    if (utf8proc_grapheme_break_stateful(known_character(character.code_point), known_character(next.code_point),
                                         &state))
      break;
    size += next.size;
    character = next;
  }
  return size;
}

int base64_value(char c) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t value = kDigits.find(c);
  return value == std::string_view::npos ? -1 : static_cast<int>(value);
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  uint32_t trie_bytes = 0;
  if (bytes.size() >= sizeof(trie_bytes)) std::memcpy(&trie_bytes, bytes.data(), sizeof(trie_bytes));
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > bytes.size() - sizeof(trie_bytes))
    throw base::InputError(base::expectation(where, "a precompiled charsmap",
                                             fmt::format("{} bytes, {} of them a trie", bytes.size(), trie_bytes)));
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), bytes.data() + sizeof(trie_bytes), trie_bytes);
  replacements_ = bytes.substr(sizeof(trie_bytes) + trie_bytes);
}

Charsmap::Match Charsmap::match(std::string_view text, bool longest) const {
  Match best;
  uint32_t node = offset_of(units_[0]);
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!ends_key(unit) || node >= units_.size()) continue;
    best = {at + 1, value_of(units_[node])};
    if (!longest) break;
  }
  return best;
}

std::string_view Charsmap::replacement(uint32_t place) const {
  const std::string_view rest = std::string_view(replacements_).substr(std::min<size_t>(place, replacements_.size()));
  return rest.substr(0, rest.find('\0'));
}

bool Charsmap::append_replacement(std::string& out, std::string_view chunk) const {
  const Match found = match(chunk, /*longest=*/false);
  if (found.size > 0) out += replacement(found.place);
  return found.size > 0;
}

std::string Charsmap::replace_graphemes(std::string_view text) const {
  constexpr size_t kShort = 6;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view grapheme = text.substr(at, grapheme_size(text.substr(at)));
    at += grapheme.size();
    if (grapheme.size() < kShort && append_replacement(out, grapheme)) continue;
    for (size_t inside = 0; inside < grapheme.size();) {
      const std::string_view character = grapheme.substr(inside, character_at(grapheme, inside).size);
      inside += character.size();
      if (!append_replacement(out, character)) out += character;
    }
  }
  return out;
}

std::string Charsmap::replace_longest(std::string_view text) const {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Match found = match(text.substr(at), /*longest=*/true);
    const size_t size = found.size > 0 ? found.size : character_at(text, at).size;
    out += found.size > 0 ? replacement(found.place) : text.substr(at, size);
    at += size;
  }
  return out;
}

std::string from_base64(std::string_view text, const std::string& where) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;  // how many of the lowest bits wait to be written
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0)
      throw base::InputError(base::expectation(
          where, "base64",
          fmt::format("the byte 0x{:02X} in '{}'", static_cast<unsigned char>(c), base::beginning_of(text, 40))));
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

}  // namespace collimate::text
