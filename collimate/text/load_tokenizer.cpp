#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/nearest_path.h"
#include "collimate/host/hub_cache.h"
#include "collimate/text/character_tokenizer.h"
#include "collimate/text/files.h"
#include "collimate/text/tokenizer_config.h"
#include "collimate/text/tokenizer_json.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

// The character tokenizer of verl's arithmetic task: its config lists code points only; the four specials before them
// are fixed: S separates prompt and answer, E ends, P pads, U is unknown.
std::unique_ptr<Tokenizer> read_characters(const std::string& directory, const TokenizerConfig& config) {
  const std::string path = directory + "/tokenizer_config.json";
  CharacterVocabulary vocabulary{.specials = {"S", "E", "P", "U"},
                                 .tokens = {},
                                 .bos = {},
                                 .eos = "E",
                                 .pad = "P",
                                 .unk = "U",
                                 .separator = "S",
                                 .chat_template = config.chat_template};
  const nlohmann::json& codes = config.json.at("char_ords");
  if (!codes.is_array() || codes.empty()) {
    throw base::InputError(base::expectation(path, "code points in char_ords", codes.dump()));
  }
  for (const nlohmann::json& code : codes) {
    if (!code.is_number_unsigned() || code.get<uint64_t>() > 0x10FFFF) {
      throw base::InputError(base::expectation(path, "a code point in char_ords", code.dump()));
    }
    append_utf8(vocabulary.tokens.emplace_back(), code.get<uint32_t>());
  }
  return std::make_unique<CharacterTokenizer>(std::move(vocabulary), config.eos_ids, directory);
}

bool has_vocab_and_merges(const std::string& directory) {
  return file_exists(directory + "/vocab.json") && file_exists(directory + "/merges.txt");
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& directory) {
  if (!std::filesystem::is_directory(directory)) {
    const std::string near = base::nearest_path(directory);
    throw base::InputError(base::expectation("tokenizer " + directory, "a model directory", "none there",
                                             near.empty() ? host::hub_remedy(directory) : near));
  }
  const TokenizerConfig config = read_tokenizer_config(directory);
  if (file_exists(directory + "/tokenizer.json")) return read_tokenizer_json(directory, config);
  if (config.json.contains("char_ords")) return read_characters(directory, config);
  if (has_vocab_and_merges(directory)) return read_vocab_and_merges(directory, config);
  throw base::InputError(base::expectation("tokenizer " + directory,
                                           "tokenizer.json, vocab.json with merges.txt, or char_ords in "
                                           "tokenizer_config.json",
                                           "no vocabulary", "the model's complete directory"));
}

bool has_tokenizer(const std::string& directory) {
  return file_exists(directory + "/tokenizer.json") || has_vocab_and_merges(directory) ||
         read_tokenizer_config(directory).json.contains("char_ords");
}

std::optional<int32_t> first_difference(const Tokenizer& one, const Tokenizer& other) {
  const int32_t shared = std::min(one.vocab_size(), other.vocab_size());
  for (int32_t id = 0; id < shared; ++id) {
    const std::string token = one.token_bytes(id), counterpart = other.token_bytes(id);
    if (!token.empty() && !counterpart.empty() && token != counterpart) return id;
  }
  return std::nullopt;
}

}  // namespace collimate::text
