#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/text/bpe.h"
#include "collimate/text/vocabulary.h"
#include "collimate/text/word_model.h"

namespace collimate::text {

// Byte pair encoding of words: their characters, or their bytes in GPT-2's spelling, as tokens that merge.
class BpeModel : public WordModel {
 public:
  struct Options {
    std::optional<int32_t> unk;
    bool drops_unknown = false;  // without unk, unknown characters are left out; otherwise they are an InputError
    bool fuse_unk = false;       // unknown characters in a row are one unk
    bool byte_fallback = false;
    bool ignore_merges = false;  // a word that is a token is that token
    bool byte_level = false;     // words are bytes
    std::string prefix;          // of a character inside a word
    std::string suffix;          // of a word's last character
    std::string where;           // names the tokenizer in errors
  };
  // A pair of tokens; the lowest rank merges first, of equal ones the leftmost.
  struct Merge {
    std::string left, right;
    int32_t rank = 0;
  };
  using Merges = std::vector<Merge>;
  // InputError at `options.where` for a merge of what are no tokens.
  BpeModel(std::shared_ptr<const Vocabulary> vocabulary, const Merges& merges, Options options);
  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  std::string kind() const override;
  bool falls_apart_at_marks() const override;

 private:
  void add_merge(const Merge& merge);
  void byte_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  void character_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  // An unk waits until a token follows or the word ends, so bytes of the fallback come before it, as in Hugging Face
  // tokenizers.
  void push_character(std::string_view spelled, bool& unk_waits, std::vector<int32_t>& symbols) const;
  void push_token(int32_t id, bool& unk_waits, std::vector<int32_t>& symbols) const;
  void push_unknown(std::string_view bytes, bool& unk_waits, std::vector<int32_t>& symbols) const;
  std::optional<int32_t> whole_word(std::string_view word) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  MergeTable merges_;
  Options options_;
  std::vector<int32_t> byte_ids_;  // byte-level: the byte's own token; byte fallback: "<0xXX>"; -1 when absent
};

}  // namespace collimate::text
