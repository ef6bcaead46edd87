#pragma once

#include "collimate/text/character_tokenizer.h"

namespace collimate::rlhf {

// Makes, for tests, a tokenizer with a token for each letter from a to z.
inline text::CharacterTokenizer letter_tokenizer() {
  text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<eos>"}, .eos = "<eos>", .pad = "<pad>"};
  for (char c = 'a'; c <= 'z'; ++c) vocabulary.tokens.emplace_back(1, c);
  return text::CharacterTokenizer(std::move(vocabulary));
}

}  // namespace collimate::rlhf
