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

// Encodes words by byte pair encoding. A word begins as its characters, or as its bytes in GPT-2's spelling, which are
// tokens that merge.
class BpeModel : public WordModel {
 public:
  struct Options {
    std::optional<int32_t> unk;
    bool drops_unknown = false;  // without unk, unknown characters are left out; otherwise they are an InputError
    bool fuse_unk = false;       // unknown characters in a row become one unk
    bool byte_fallback = false;
    bool ignore_merges = false;  // a word that is itself a token becomes that token
    bool byte_level = false;     // words are split into bytes
    std::string prefix;          // stands ahead of each character but a word's first
    std::string suffix;          // stands behind a word's last character
    std::string where;           // names the tokenizer in errors
  };
  // A pair of tokens that merge. The lowest rank merges first, and of equal ranks the leftmost pair.
  struct Merge {
    std::string left, right;
    int32_t rank = 0;
  };
  using Merges = std::vector<Merge>;
  // Throws InputError, which names `options.where`, for a merge whose parts or whose result are no tokens.
  BpeModel(std::shared_ptr<const Vocabulary> vocabulary, const Merges& merges, Options options);
  void encode(std::string_view word, std::vector<int32_t>& ids) const override;
  std::string kind() const override;
  bool falls_apart_at_marks() const override;

 private:
  void add_merge(const Merge& merge);
  void byte_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  void character_symbols(std::string_view word, std::vector<int32_t>& symbols) const;
  // These three hold an unk back until a token follows or the word ends, so that bytes of the fallback come before it,
  // as in Hugging Face tokenizers.
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
