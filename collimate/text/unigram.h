#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collimate/text/trie.h"
#include "collimate/text/vocabulary.h"
#include "collimate/text/word_model.h"

namespace collimate::text {

// Cuts words by the unigram language model of SentencePiece (Kudo 2018): into the tokens whose log-probs have the
// highest sum (Viterbi), as Hugging Face tokenizers cut them, or SentencePiece's library. A character that is no token
// costs 10 more than the least likely token; such characters in a row are one unk, or their bytes where all of these
// are tokens.
class Unigram : public WordModel {
 public:
  struct Options {
    std::optional<int32_t> unk;
    bool byte_fallback = false;
    bool float_sums = false;  // sums are rounded to float, as SentencePiece's are; the first cut of equal sums counts
    // The log-prob of the least likely token, where `scores` holds lower ones of other tokens.
    std::optional<double> least = {};
    std::string where;  // names the tokenizer in errors
  };
  // `scores` are the tokens' log-probs by id. A token whose score is not a number is in no cut.
  Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores, Options options);
  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  std::string kind() const override { return byte_fallback_.empty() ? "Unigram" : "Unigram with byte fallback"; }

 private:
  double sum(double a, double b) const { return float_sums_ ? static_cast<float>(a + b) : a + b; }
  void push_unknown(std::string_view bytes, std::vector<int32_t>& ids) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<double> scores_;  // by id
  std::optional<int32_t> unk_;
  std::string where_;
  std::vector<int32_t> byte_fallback_;  // by byte; empty without byte fallback
  bool float_sums_;
  double unk_score_ = 0;
  Trie trie_;
};

}  // namespace collimate::text
