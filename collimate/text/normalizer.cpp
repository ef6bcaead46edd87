#include "collimate/text/normalizer.h"

#include <algorithm>
#include <memory>

#include "collimate/base/error.h"
#include "collimate/text/bert_normalizer.h"
#include "collimate/text/byte_spelling.h"
#include "collimate/text/characters.h"
#include "collimate/text/charsmap.h"
#include "collimate/text/component.h"
#include "collimate/text/file_regex.h"
#include "collimate/text/unicode_form.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using nlohmann::json;

TextStep form_step(UnicodeForm form) {
  return [form](std::string& text, SegmentPlace) { text = unicode_form(text, form); };
}

// Makes a step that changes one character after the other.
TextStep character_step(void (*append)(std::string& out, uint32_t code_point)) {
  return [append](std::string& text, SegmentPlace) { text = map_characters(text, append); };
}

void append_without_mark(std::string& out, uint32_t code_point) {
  if (!is_mark(code_point)) append_utf8(out, code_point);
}

// Makes a step that takes white space off the ends.
TextStep strip_step(bool left, bool right) {
  return [left, right](std::string& text, SegmentPlace) {
    if (right) text.resize(skip_spaces_left(text, 0, text.size()));
    if (left) text.erase(0, skip_spaces_right(text, 0));
  };
}

TextStep charsmap_step(const json& component, const std::string& where) {
  const auto found = component.find("precompiled_charsmap");
  if (found == component.end() || found->is_null()) return [](std::string&, SegmentPlace) {};
  const auto map = std::make_shared<const Charsmap>(from_base64(found->get_ref<const std::string&>(), where), where);
  return [map](std::string& text, SegmentPlace) {
    text = apply_to_valid(text, [&](std::string_view run) { return map->replace_graphemes(run); });
  };
}

TextStep prepend_step(std::string prefix) {
  return [prefix = std::move(prefix)](std::string& text, SegmentPlace place) {
    if (!text.empty() && !(place.first && place.continues)) text.insert(0, prefix);
  };
}

std::string replace_matches(const Regex& regex, std::string_view text, const std::string& content) {
  std::string out, buffer;
  const std::string_view seen = with_stand_ins(text, buffer);
  size_t at = 0;
  for_each_match(
      seen, [&](size_t from, Span& match) { return regex.find(seen, from, match); },
      [&](Span match) {
        out.append(text.substr(at, match.begin - at));
        out += content;
        at = match.end;
      });
  out.append(text.substr(at));
  return out;
}

using StepMaker = TextStep (*)(const json& component, const std::string& where);

// Returns the makers of the components that are one step each.
const Components<StepMaker>& step_makers() {
  static const Components<StepMaker> table = {
      {"BertNormalizer", [](const json& component, const std::string&) { return bert_normalizer(component); }},
      {"ByteLevel",
       [](const json&, const std::string&) -> TextStep {
         return [](std::string& text, SegmentPlace) { text = byte_spelling_of(text); };
       }},
      {"Lowercase", [](const json&, const std::string&) { return character_step(append_lower); }},
      {"NFC", [](const json&, const std::string&) { return form_step(UnicodeForm::kC); }},
      {"NFD", [](const json&, const std::string&) { return form_step(UnicodeForm::kD); }},
      {"NFKC", [](const json&, const std::string&) { return form_step(UnicodeForm::kKC); }},
      {"NFKD", [](const json&, const std::string&) { return form_step(UnicodeForm::kKD); }},
      {"Nmt", [](const json&, const std::string&) { return character_step(append_nmt); }},
      {"Precompiled", charsmap_step},
      {"Prepend", [](const json& component, const std::string&) { return prepend_step(component.at("prepend")); }},
      {"Replace", replace_step},
      {"Strip",
       [](const json& component, const std::string&) {
         return strip_step(component.value("strip_left", true), component.value("strip_right", true));
       }},
      {"StripAccents", [](const json&, const std::string&) { return character_step(append_without_mark); }},
  };
  return table;
}

}  // namespace

std::vector<TextStep> parse_normalizer(const json& json, const std::string& where) {
  std::vector<TextStep> steps;
  each_component(
      {"normalizer", "normalizers"}, step_makers(), json, where,
      [&](const auto& component, const std::string&, StepMaker make) { steps.push_back(make(component, where)); });
  return steps;
}

TextStep replace_step(const json& component, const std::string& where) {
  const json& pattern = component.at("pattern");
  const std::string content = component.at("content");
  if (pattern.contains("String")) {
    const std::string from = pattern.at("String");
    if (from.empty()) throw base::InputError(base::expectation(where, "a pattern to replace", "an empty one"));
    return [from, content](std::string& text, SegmentPlace) { replace_all(text, from, content); };
  }
  auto regex = std::make_shared<const Regex>(read_file_regex(pattern, where));
  return [regex, content](std::string& text, SegmentPlace) {
    text = apply_to_valid(text, [&](std::string_view run) { return replace_matches(*regex, run, content); });
  };
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  size_t begin = 0;
  for (; at != std::string::npos; at = text.find(from, begin)) {
    out.append(text, begin, at - begin);
    out += to;
    begin = at + from.size();
  }
  out.append(text, begin);
  text = std::move(out);
}

void unknown_component(const std::string& where, const std::string& kind, const std::string& type,
                       const std::string& known) {
  throw base::InputError(base::expectation(where, fmt::format("a {} among {}", kind, known), fmt::format("'{}'", type),
                                           "another tokenizer, or convert it"));
}

}  // namespace collimate::text
