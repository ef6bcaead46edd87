#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collimate/text/added_tokens.h"
#include "collimate/text/decoder.h"
#include "collimate/text/model_json.h"
#include "collimate/text/normalizer.h"
#include "collimate/text/pre_tokenizer.h"
#include "collimate/text/tokenizer.h"

namespace collimate::text {

// All parts of a tokenizer.json.
struct TokenizerParts {
  VocabularyModel model;  // without the added tokens
  std::vector<AddedToken> added;
  std::vector<TextStep> normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  std::vector<int32_t> before, after;  // ids that add_special puts around a text
};

// Runs the pipeline of a tokenizer.json: added tokens, normalizer, pre-tokenizer, model. Immutable.
//
// Byte-level tokenizers and those with byte fallback keep bytes that are not well-formed UTF-8 exactly, one token per
// byte; others give unk. A BPE file without unk leaves out what it has no token for. A SentencePiece-style tokenizer
// cannot tell U+2581 from a space, nor restore one leading space under its dummy prefix rule; everything else
// round-trips.
class HfTokenizer : public Tokenizer {
 public:
  // Encoding throws InputError for text that the vocabulary cannot express, where the model neither has unk nor drops
  // it.
  HfTokenizer(TokenizerParts parts, TokenizerInfo info);

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const override;
  std::string token_bytes(int32_t id, TokenPlace place = {}) const override;
  TextEnds text_ends() const override { return parts_.decoder.ends; }
  bool is_special(int32_t id) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_.size()); }
  // Copies the files that the tokenizer was read from. Throws RunError when none of them is left.
  void save(const std::string& directory) const override;

 private:
  struct Work;
  void index_tokens();
  std::string decoded(size_t id, TokenPlace place) const;
  void add_matcher(const AddedToken& token);
  void encode_segment(std::string_view text, EncodeOptions options, bool first, Work& work) const;
  void encode_normalized(std::string text, SegmentPlace place, Work& work) const;
  void encode_word(std::string_view word, Work& work) const;
  void run(std::string_view text, EncodeOptions options, Work& work) const;

  TokenizerParts parts_;
  uint64_t cache_owner_ = 0;      // of this tokenizer's words in WordCache
  bool divide_at_marks_ = false;  // words can be cut before space marks, which makes them short
  TokenMatcher raw_matcher_, normalized_matcher_;
  std::unordered_map<std::string, int32_t> added_ids_;
  // By id:
  std::vector<std::string> tokens_;       // as the files spell them
  std::vector<std::string> bytes_;        // the bytes that they add in the middle of a text
  std::vector<char> special_, verbatim_;  // verbatim: the decoder leaves the token as it is
};

}  // namespace collimate::text
