#include "collimate/text/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "collimate/base/error.h"
#include "collimate/text/characters.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

int options_of(UnicodeForm form) {
  const bool compose = form == UnicodeForm::kC || form == UnicodeForm::kKC;
  const bool compatible = form == UnicodeForm::kKC || form == UnicodeForm::kKD;
  return UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0);
}

std::string form_of_run(std::string_view text, int options) {
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &raw, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  COLLIMATE_CHECK(length >= 0, "utf8proc: {}", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(raw), static_cast<size_t>(length)};
}

// When composing, utf8proc 2.8 takes this character for a final consonant, which it is not, and loses it after a
// syllable.
constexpr uint32_t kBeforeFinals = 0x11A7;

// Brings the characters between inert ones into the form; inert ones stay.
std::string form_around_inert(std::string_view run, int options) {
  std::string out;
  size_t from = 0;
  for (size_t at = 0; at < run.size();) {
    const Character character = character_at(run, at);
    if (is_inert(character.code_point) || character.code_point == kBeforeFinals) {
      out += form_of_run(run.substr(from, at - from), options);
      out += run.substr(at, character.size);
      from = at + character.size;
    }
    at += character.size;
  }
  return out + form_of_run(run.substr(from), options);
}

}  // namespace

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string apply_to_valid(const std::string& text, const std::function<std::string(std::string_view)>& change) {
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t good = valid_run(rest);
    if (good > 0) out += change(rest.substr(0, good));
    rest.remove_prefix(good);
    if (!rest.empty()) {
      out += rest[0];
      rest.remove_prefix(1);
    }
  }
  return out;
}

std::string unicode_form(const std::string& text, UnicodeForm form) {
  if (is_ascii(text)) return text;
  return apply_to_valid(text, [&](std::string_view run) { return form_around_inert(run, options_of(form)); });
}

}  // namespace collimate::text
