#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/normalizer.h"
#include "collimate/text/regex.h"

namespace collimate::text {

// A text and the words found in it so far, in order; what lies between words has been removed.
struct Pieces {
  std::string text;
  std::vector<Span> words;
};

// Cuts a text into words, between normalizer and model.
struct PreTokenizer {
  using Step = std::function<void(Pieces& pieces, SegmentPlace place)>;
  std::vector<Step> steps;
  bool splits = false;      // some step splits
  bool byte_level = false;  // the model's alphabet is bytes in GPT-2's spelling, which no step has written yet

  // Cuts `pieces.text` into `pieces.words`. Where a step splits, each byte that is not part of well-formed UTF-8 is a
  // word.
  void split(Pieces& pieces, SegmentPlace place) const;
};

// Reads "pre_tokenizer" of a tokenizer.json, null or any that Hugging Face tokenizers 0.23 have. Throws InputError,
// which names it, for any other component.
PreTokenizer parse_pre_tokenizer(const nlohmann::json& json, const std::string& where);

// Adds a step that writes words in GPT-2's spelling of their bytes, for a model that knows nothing of bytes.
void spell_bytes(PreTokenizer& pre_tokenizer);

}  // namespace collimate::text
