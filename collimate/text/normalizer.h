#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::text {

// Says where a text between added tokens stands: `first` where it begins the whole text, `continues` where the whole
// text goes on after earlier text.
struct SegmentPlace {
  bool first = true;
  bool continues = false;
};

// Changes a text in place. Bytes that are not well-formed UTF-8 are kept.
using TextStep = std::function<void(std::string& text, SegmentPlace place)>;

// Reads "normalizer" of a tokenizer.json, null or any that Hugging Face tokenizers 0.23 have. Throws InputError, which
// names it, for any other component.
std::vector<TextStep> parse_normalizer(const nlohmann::json& json, const std::string& where);

// Reads "Replace", which replaces a text, or what a regular expression matches, by another text.
TextStep replace_step(const nlohmann::json& component, const std::string& where);

// Replaces every occurrence of `from`, which is not empty.
void replace_all(std::string& text, const std::string& from, const std::string& to);

}  // namespace collimate::text
