#pragma once

#include <optional>
#include <string>

#include "collimate/text/vocabulary.h"
#include "collimate/text/word_model.h"

namespace collimate::text {

// Gives each word one id. A word that is no token is unk.
class WordLevel : public WordModel {
 public:
  WordLevel(std::shared_ptr<const Vocabulary> vocabulary, std::optional<int32_t> unk, std::string where)
      : vocabulary_(std::move(vocabulary)), unk_(unk), where_(std::move(where)) {}
  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  std::string kind() const override { return "one id per word"; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<int32_t> unk_;
  std::string where_;
};

// Cuts words as BERT's model does (Wu et al. 2016, tokenization.py of BERT): it takes the longest token that begins the
// rest of the word, again and again; tokens inside a word begin with a prefix. A word that cannot be cut so, or is too
// long, is unk.
class WordPiece : public WordModel {
 public:
  struct Options {
    int32_t unk = 0;
    std::string prefix = "##";
    int64_t longest_word = 100;  // characters
  };
  WordPiece(std::shared_ptr<const Vocabulary> vocabulary, Options options);
  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  std::string kind() const override { return "WordPiece"; }

 private:
  bool cut(std::string_view word, std::vector<int32_t>& ids) const;
  // Finds the longest token at the start of `rest`, a part of a word at `inside`. Returns its bytes, 0 where there is
  // none.
  size_t longest(std::string_view rest, bool inside, int32_t& id) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  Options options_;
  size_t longest_token_ = 0;  // bytes of the longest token, its prefix included
};

}  // namespace collimate::text
