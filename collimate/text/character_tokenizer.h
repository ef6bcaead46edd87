#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// The tokens of a CharacterTokenizer: ids count the specials first, then the tokens. With `parse_special` a special is
// matched whole wherever it stands in the text; a token is one character (one or more code points, longest match
// first).
struct CharacterVocabulary {
  std::vector<std::string> specials;  // e.g. {"<pad>", "<eos>", "<unk>"}
  std::vector<std::string> tokens;    // e.g. {"0", …, "9", ","}
  std::string bos, eos, pad, unk;     // each one of `specials`, or empty
  std::string separator;              // sep_token: one of `specials`, or empty
  std::string chat_template;
};

// Gives each character one id. A character that the vocabulary does not have becomes unk; without unk, encode throws
// InputError, which names the character and its byte offset.
class CharacterTokenizer : public Tokenizer {
 public:
  // `stop_ids` end a text beside eos. `directory` is where the vocabulary was read, "" for one built in memory. Throws
  // InputError for an empty vocabulary, a repeated or empty token, or a bos/eos/pad/unk/separator that is not a
  // special.
  explicit CharacterTokenizer(CharacterVocabulary vocabulary, const std::vector<int32_t>& stop_ids = {},
                              const std::string& directory = "");

  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const override;
  std::string decode(std::span<const int32_t> ids, bool skip_special = true) const override;
  std::string token_bytes(int32_t id, TokenPlace place = {}) const override;
  bool is_special(int32_t id) const override;
  std::optional<int32_t> id_of(std::string_view token) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(tokens_.size()); }
  // Writes tokenizer.json (a WordLevel model over single characters) and tokenizer_config.json, from which
  // load_tokenizer and the Hugging Face `tokenizers` library read the same ids.
  void save(const std::string& directory) const override;

 private:
  void index();
  // Returns the bytes of the token at the start of `text` and sets `id`, which is -1 for an unknown character.
  size_t match(std::string_view text, bool parse_special, int32_t& id) const;

  CharacterVocabulary vocabulary_;
  std::vector<std::string> tokens_;  // by id
  std::unordered_map<std::string, int32_t> ids_;
  size_t longest_ = 1;  // bytes of the longest token
};

}  // namespace collimate::text
