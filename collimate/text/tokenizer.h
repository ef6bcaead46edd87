#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// `add_special` puts the model's own bos / eos around the text, as its post-processor or tokenizer_config.json says.
// With `parse_special` a special token written out in the text becomes its id; otherwise it is ordinary text.
// `continues` says that the text goes on after earlier text: no bos, no dummy prefix space (SentencePiece style).
// `open_end` says that more text follows, so that add_special puts nothing after this one.
struct EncodeOptions {
  bool add_special = false;
  bool parse_special = true;
  bool continues = false;
  bool open_end = false;
};

// Holds what a model directory says about its tokenizer beside the vocabulary. Ids are absent where the directory names
// none.
struct TokenizerInfo {
  std::optional<int32_t> bos, eos, pad, unk;
  std::vector<int32_t> stop_ids;  // eos and those of generation_config.json, ascending, no repeats
  std::string chat_template;      // Jinja text, empty when the directory has none
  std::string tool_template;      // for conversations with tools, empty where it is the same
  std::string separator;          // sep_token as text, which templates may name; mostly empty
  std::string directory;          // where it was read from, empty when built in memory
  std::string kind;               // "byte-level BPE", "SentencePiece BPE with byte fallback", "characters"
};

// Says where a token stands in a text: some tokenizers decode the first or the last token in another way than the
// others.
struct TokenPlace {
  bool first = false;
  bool last = false;
};

// Decoding takes `stripped` off the whole text, up to `start` times at its beginning and `stop` times at its end.
struct TextEnds {
  std::string stripped;
  int start = 0;
  int stop = 0;
  bool last_differs = false;  // the last token's text is not what it would be inside the text
};

// Turns text into ids and back. Const member functions may be called from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Returns the ids of a text. Accepts any bytes, broken UTF-8 too. Takes time linear in the text up to a logarithm of
  // the longest word.
  virtual std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const = 0;
  // Returns the exact bytes that the ids stand for: broken UTF-8 is not replaced (see valid_utf8 in utf8.h). Unused
  // ids, and those beyond the vocabulary (models pad their embedding), decode to nothing; a negative id throws
  // InputError.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special = true) const = 0;
  // Returns the bytes that one token adds to a text at a place, by default in the middle, before TextEnds are taken
  // off.
  virtual std::string token_bytes(int32_t id, TokenPlace place = {}) const = 0;
  virtual TextEnds text_ends() const { return {}; }
  virtual bool is_special(int32_t id) const = 0;
  // Finds an id by the token's text as the vocabulary writes it.
  virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  // Returns one more than the largest id.
  virtual int32_t vocab_size() const = 0;
  // Writes the tokenizer's files into an existing directory, in a form that load_tokenizer reads, with a copy of the
  // generation_config.json that it was read with.
  virtual void save(const std::string& directory) const = 0;

  const TokenizerInfo& info() const { return info_; }
  std::optional<int32_t> bos_id() const { return info_.bos; }
  std::optional<int32_t> eos_id() const { return info_.eos; }
  std::optional<int32_t> pad_id() const { return info_.pad; }

 protected:
  TokenizerInfo info_;
};

// Reads tokenizer.json, else a character tokenizer (char_ords in tokenizer_config.json), else vocab.json + merges.txt,
// else tokenizer.model (SentencePiece's, or Llama 3's in tiktoken's form), else tiktoken.model (Moonlight, Kimi), else
// qwen.tiktoken, with tokenizer_config.json, special_tokens_map.json, generation_config.json and chat_template.jinja
// beside them. For adapters without a tokenizer it reads that of their base model. Throws InputError for a missing
// directory or vocabulary, a malformed file, and a component that is not supported, which it names.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& directory);
// Returns whether the directory has a vocabulary. Throws InputError for a malformed tokenizer_config.json.
bool has_tokenizer(const std::string& directory);
// Returns the names of all files that load_tokenizer looks at.
std::span<const char* const> tokenizer_files();
// Returns the names of further files in a directory, which other programs need with its model: the Python modules that
// auto_map names in tokenizer_config.json, and in the config.json of Qwen 1, those that these import from beside them,
// and templates for other uses.
std::vector<std::string> companion_files(const std::string& directory);
// Returns the first id whose token differs. Ids that only one of the two has (added tokens, places left free) are no
// difference.
std::optional<int32_t> first_difference(const Tokenizer& one, const Tokenizer& other);

// Turns ids one by one into text. No push splits a UTF-8 character or gives text that a later one would change, and the
// pieces joined are decode() of all the ids. Bytes that no later byte can make valid are given as they are. Keeps a
// reference to the tokenizer.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true);
  // Returns decode(ids), which uses this.
  std::string whole(std::span<const int32_t> ids);
  // Makes the ids that are pushed from now on continue the text of `ids`: the pieces are what decode() of all ids has
  // behind decode(ids).
  void follow(std::span<const int32_t> ids);
  // Returns the text that is certain after `id`, perhaps empty.
  std::string push(int32_t id);
  // Returns what is left, an unfinished character included; the decoder is then as new.
  std::string finish();

 private:
  void restart();
  void join(int32_t id);
  void append(std::string_view text);

  const Tokenizer& tokenizer_;
  bool skip_special_;
  TextEnds ends_;
  bool at_start_ = true;
  int start_left_ = 0;   // how often `stripped` may still be taken off the beginning
  int held_ = 0;         // how often `stripped` ends the text so far, which the whole text's end may lose
  std::string between_;  // text that the last token adds only when another follows
  std::string at_end_;   // text that it adds only when none does
  std::string pending_;  // certain text that has not been given yet
};

}  // namespace collimate::text
