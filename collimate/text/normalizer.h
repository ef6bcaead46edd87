#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::text {

// A SegmentPlace is where a text between added tokens stands: `first` in the whole text, `continues` earlier text.
struct SegmentPlace {
  bool first = true;
  bool continues = false;
};

// Changes a text in place. Bytes that are not well-formed UTF-8 are kept.
using TextStep = std::function<void(std::string& text, SegmentPlace place)>;

// "normalizer" of a tokenizer.json: NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence or null.
// Throws InputError naming any other component.
std::vector<TextStep> parse_normalizer(const nlohmann::json& json, const std::string& where);

// Replaces every occurrence of `from`, which is not empty.
void replace_all(std::string& text, const std::string& from, const std::string& to);

// [where] expected one of `known`, got `type`.
[[noreturn]] void unknown_component(const std::string& where, const std::string& kind, const std::string& type,
                                    const std::string& known);

}  // namespace collimate::text
