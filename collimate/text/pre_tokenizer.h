#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/normalizer.h"
#include "collimate/text/regex.h"

namespace collimate::text {

// A text and its words so far, in order; what lies between them was removed.
struct Pieces {
  std::string text;
  std::vector<Span> words;
};

// This happens to a text between normalizer and model.
struct PreTokenizer {
  using Step = std::function<void(Pieces& pieces, SegmentPlace place)>;
  std::vector<Step> steps;
  bool splits = false;      // some step splits
  bool byte_level = false;  // the model's alphabet is bytes in GPT-2's spelling, and no step has spelled them

  // Puts `pieces.text` into words; in a text that is split, each byte that is not part of well-formed UTF-8 is one.
  void split(Pieces& pieces, SegmentPlace place) const;
};

// "pre_tokenizer" of a tokenizer.json, null or any that Hugging Face tokenizers 0.23 have.
// Throws InputError naming any other component.
PreTokenizer parse_pre_tokenizer(const nlohmann::json& json, const std::string& where);

// The last step: words in GPT-2's spelling of their bytes, for a model that knows nothing of bytes.
void spell_bytes(PreTokenizer& pre_tokenizer);

}  // namespace collimate::text
