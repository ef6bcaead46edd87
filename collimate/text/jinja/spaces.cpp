#include "collimate/text/jinja/spaces.h"

#include "collimate/text/characters.h"
#include "collimate/text/jinja/budget.h"

namespace collimate::text::jinja {
namespace {

bool ends_line(std::string_view character) {
  if (character.size() == 1) return std::string_view("\n\r\v\f\x1c\x1d\x1e").find(character) != std::string_view::npos;
  return character == "\u0085" || character == "\u2028" || character == "\u2029";
}
bool ends_no_line(std::string_view character) { return !ends_line(character); }

}  // namespace

bool is_space(std::string_view character) {
  const uint32_t code_point = character_at(character, 0).code_point;
  return is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

bool is_no_space(std::string_view character) { return !is_space(character); }

size_t skip(std::string_view text, size_t at, const IsKind& is_kind) {
  while (at < text.size()) {
    const size_t size = character_at(text, at).size;
    if (!is_kind(text.substr(at, size))) break;
    at += size;
  }
  return at;
}

size_t skip_back(std::string_view text, size_t end, const IsKind& is_kind) {
  while (end > 0) {
    size_t begin = previous_character(text, end);
    if (begin == end) --begin;  // a byte that belongs to no character
    if (!is_kind(text.substr(begin, end - begin))) break;
    end = begin;
  }
  return end;
}

std::string_view stripped(std::string_view text) {
  const std::string_view left = text.substr(0, skip_back(text, text.size(), is_space));
  return left.substr(skip(left, 0, is_space));
}

std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < text.size();) {
    charge(sizeof(std::string_view));
    const size_t end = skip(text, at, ends_no_line);
    size_t next = end;
    if (end < text.size()) next += text.substr(end, 2) == "\r\n" ? 2 : character_at(text, end).size;
    lines.push_back(text.substr(at, (keep_ends ? next : end) - at));
    at = next;
  }
  return lines;
}

}  // namespace collimate::text::jinja
