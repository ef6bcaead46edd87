#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/text/normalizer.h"
#include "collimate/text/regex.h"

namespace collimate::text {

// Appends the parts of `piece` of `text`, which is well-formed UTF-8, in order.
using Splitter = std::function<void(std::string_view text, Span piece, std::vector<Span>& parts)>;

// This happens to a text between normalizer and model.
struct PreTokenizer {
  std::vector<TextStep> transforms;  // of the whole segment, before it is split
  std::vector<Splitter> splitters;   // each splits every part the earlier ones left
  bool byte_level = false;           // the model's alphabet is bytes in GPT-2's spelling

  // Words of `text`; each byte that is not part of well-formed UTF-8 is a word of its own.
  void split(std::string_view text, std::vector<Span>& words) const;
};

// "pre_tokenizer" of a tokenizer.json: ByteLevel, Split, Digits, Metaspace, Sequence or null.
// Throws InputError naming any other component, or an order of them that is not supported.
PreTokenizer parse_pre_tokenizer(const nlohmann::json& json, const std::string& where);

// The regular expression of GPT-2's own tokenizer.
extern const char* const kGpt2Pattern;

}  // namespace collimate::text
