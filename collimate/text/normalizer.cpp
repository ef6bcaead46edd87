#include "collimate/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "collimate/base/error.h"
#include "collimate/text/regex.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using nlohmann::json;

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

std::string unicode_form(std::string_view text, int options) {
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &raw, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  COLLIMATE_CHECK(length >= 0, "utf8proc: {}", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(raw), static_cast<size_t>(length)};
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

TextStep unicode_step(int options) {
  return [options](std::string& text, SegmentPlace) {
    if (is_ascii(text)) return;
    text = apply_to_valid(text, [options](std::string_view run) { return unicode_form(run, options); });
  };
}

TextStep prepend_step(std::string prefix) {
  return [prefix = std::move(prefix)](std::string& text, SegmentPlace place) {
    if (!text.empty() && !(place.first && place.continues)) text.insert(0, prefix);
  };
}

std::string replace_matches(const Regex& regex, std::string_view text, const std::string& content) {
  std::string out;
  size_t at = 0;
  Span match;
  for (size_t from = 0; from <= text.size() && regex.find(text, from, match);) {
    out.append(text.substr(at, match.begin - at));
    out += content;
    at = match.end;
    from = match.end;
    if (match.size() == 0) from += std::max<size_t>(1, utf8_length(text.substr(std::min(from, text.size()))));
  }
  out.append(text.substr(at));
  return out;
}

TextStep replace_step(const json& component, const std::string& where) {
  const json& pattern = component.at("pattern");
  const std::string content = component.at("content");
  if (pattern.contains("String")) {
    const std::string from = pattern.at("String");
    if (from.empty()) throw base::InputError(base::expectation(where, "a pattern to replace", "an empty one"));
    return [from, content](std::string& text, SegmentPlace) { replace_all(text, from, content); };
  }
  auto regex = std::make_shared<const Regex>(pattern.at("Regex").get<std::string>());
  return [regex, content](std::string& text, SegmentPlace) {
    text = apply_to_valid(text, [&](std::string_view run) { return replace_matches(*regex, run, content); });
  };
}

void parse_into(const json& component, const std::string& where, std::vector<TextStep>& steps) {
  if (component.is_null()) return;
  const std::string type = component.at("type");
  const int base_options = UTF8PROC_STABLE;
  if (type == "Sequence") {
    for (const json& part : component.at("normalizers")) parse_into(part, where, steps);
  } else if (type == "NFC") {
    steps.push_back(unicode_step(base_options | UTF8PROC_COMPOSE));
  } else if (type == "NFD") {
    steps.push_back(unicode_step(base_options | UTF8PROC_DECOMPOSE));
  } else if (type == "NFKC") {
    steps.push_back(unicode_step(base_options | UTF8PROC_COMPOSE | UTF8PROC_COMPAT));
  } else if (type == "NFKD") {
    steps.push_back(unicode_step(base_options | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT));
  } else if (type == "Prepend") {
    steps.push_back(prepend_step(component.at("prepend")));
  } else if (type == "Replace") {
    steps.push_back(replace_step(component, where));
  } else {
    unknown_component(where, "normalizer", type, "NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence");
  }
}

}  // namespace

std::vector<TextStep> parse_normalizer(const json& json, const std::string& where) {
  std::vector<TextStep> steps;
  parse_into(json, where, steps);
  return steps;
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
