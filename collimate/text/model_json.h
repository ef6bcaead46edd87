#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/vocabulary.h"
#include "collimate/text/word_model.h"

namespace collimate::text {

// A vocabulary and the model over it.
struct VocabularyModel {
  std::shared_ptr<const Vocabulary> vocabulary;
  std::unique_ptr<const WordModel> model;
  bool byte_level = false;  // the model takes words as bytes, not in GPT-2's spelling of them
};

// Reads "model" of a tokenizer.json: BPE, Unigram, WordPiece or WordLevel. With `byte_level` words come as bytes, whose
// spelling the vocabulary has. Throws InputError, which names it, for any other model and for an option that is not
// supported.
VocabularyModel parse_model(const nlohmann::json& file, const std::string& where, bool byte_level);

}  // namespace collimate::text
