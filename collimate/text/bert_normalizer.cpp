#include "collimate/text/bert_normalizer.h"

#include <algorithm>
#include <iterator>

#include "collimate/text/characters.h"
#include "collimate/text/unicode_form.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

void append_clean(std::string& out, uint32_t code_point) {
  if (code_point == 0 || code_point == 0xFFFD || is_control(code_point)) return;
  append_utf8(out, is_white_space(code_point) ? ' ' : code_point);
}

void append_apart(std::string& out, uint32_t code_point) {
  const bool apart = is_ideograph(code_point);
  if (apart) out += ' ';
  append_utf8(out, code_point);
  if (apart) out += ' ';
}

void append_spacing(std::string& out, uint32_t code_point) {
  if (!is_nonspacing(code_point)) append_utf8(out, code_point);
}

}  // namespace

TextStep bert_normalizer(const nlohmann::json& component) {
  const bool clean = component.value("clean_text", true);
  const bool apart = component.value("handle_chinese_chars", true);
  const bool lower = component.value("lowercase", true);
  const auto accents = component.find("strip_accents");
  const bool strip = accents == component.end() || accents->is_null() ? lower : accents->get<bool>();
  return [=](std::string& text, SegmentPlace) {
    if (clean) text = map_characters(text, append_clean);
    if (!is_ascii(text)) {
      if (apart) text = map_characters(text, append_apart);
      if (strip) text = map_characters(unicode_form(text, UnicodeForm::kD), append_spacing);
    }
    if (lower) text = map_characters(text, append_lower);
  };
}

void append_nmt(std::string& out, uint32_t code_point) {
  static constexpr uint32_t kDropped[] = {0x0B, 0x7F, 0x8F, 0x9F};
  static constexpr uint32_t kSpaces[] = {0x09,   0x0A,   0x0C,   0x0D,   0x1680, 0x200B, 0x200C, 0x200D,
                                         0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  const auto among = [&](const auto& list) { return std::find(std::begin(list), std::end(list), code_point); };
  const bool control = (code_point >= 1 && code_point <= 8) || (code_point >= 0x0E && code_point <= 0x1F);
  if (control || among(kDropped) != std::end(kDropped)) return;
  append_utf8(out, among(kSpaces) != std::end(kSpaces) ? ' ' : code_point);
}

}  // namespace collimate::text
