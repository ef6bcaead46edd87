#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "collimate/text/added_tokens.h"
#include "collimate/text/bpe.h"
#include "collimate/text/decoder.h"
#include "collimate/text/normalizer.h"
#include "collimate/text/pre_tokenizer.h"
#include "collimate/text/tokenizer.h"

namespace collimate::text {

// The model of a tokenizer.json: byte pair encoding, or one id per word (`word_level`).
struct VocabularyModel {
  std::vector<std::string> tokens;  // by id, as the file spells them; empty where an id is unused
  std::unordered_map<std::string, int32_t> ids;
  MergeTable merges;
  std::optional<int32_t> unk;
  bool word_level = false;
  bool byte_fallback = false;
  bool fuse_unk = false;
  bool ignore_merges = false;  // a word that is a token is that token
};

// All parts of a tokenizer.json.
struct TokenizerParts {
  VocabularyModel model;
  std::vector<AddedToken> added;
  std::vector<TextStep> normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  std::vector<int32_t> before, after;  // what add_special puts around a text
};

// The tokenizer.json pipeline: added tokens, normalizer, pre-tokenizer, model. Immutable.
//
// Bytes that are not well-formed UTF-8: byte-level tokenizers and those with byte fallback keep them exactly, one token
// per byte; others give unk. A SentencePiece-style tokenizer cannot tell U+2581 from a space, nor restore one leading
// space under its dummy prefix rule; everything else round-trips.
class HfTokenizer : public Tokenizer {
 public:
  // Throws InputError for a vocabulary that cannot express some text and has no unk when it meets such text.
  HfTokenizer(TokenizerParts parts, TokenizerInfo info);

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const override;
  std::string token_bytes(int32_t id) const override;
  bool is_special(int32_t id) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(bytes_.size()); }
  // Copies the files it was read from; throws RunError when one has gone.
  void save(const std::string& directory) const override;

 private:
  struct Work;
  void index_bytes();
  bool spaces_divide_words() const;
  void encode_segment(std::string_view text, EncodeOptions options, bool first, Work& work) const;
  void encode_normalized(std::string text, SegmentPlace place, Work& work) const;
  void encode_word(std::string_view word, Work& work) const;
  void merge_word(std::string_view word, Work& work) const;
  void byte_symbols(std::string_view word, Work& work) const;
  void character_symbols(std::string_view word, Work& work) const;
  void push_unknown(std::string_view bytes, Work& work) const;
  void run(std::string_view text, EncodeOptions options, Work& work) const;

  TokenizerParts parts_;
  uint64_t cache_owner_ = 0;       // of this tokenizer's words in WordCache
  bool divide_at_spaces_ = false;  // no token has U+2581 after another character: words can be merged one by one
  TokenMatcher raw_matcher_, normalized_matcher_;
  std::vector<std::string> bytes_;       // by id: what the token adds to a text
  std::vector<char> special_;            // by id
  std::array<int32_t, 256> byte_ids_{};  // byte-level: the byte's own token; byte fallback: "<0xXX>"; -1 when absent
};

}  // namespace collimate::text
