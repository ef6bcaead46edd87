#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/nearest_path.h"
#include "collimate/host/base_model.h"
#include "collimate/host/file_io.h"
#include "collimate/host/hub_cache.h"
#include "collimate/text/character_tokenizer.h"
#include "collimate/text/files.h"
#include "collimate/text/regex.h"
#include "collimate/text/sentencepiece.h"
#include "collimate/text/tiktoken.h"
#include "collimate/text/tokenizer_config.h"
#include "collimate/text/tokenizer_json.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

// Reads the character tokenizer of verl's arithmetic task. Its config lists code points only, and the four specials
// before them are fixed: S separates prompt and answer, E ends, P pads, U is unknown.
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

// Reads a tokenizer.model, which is SentencePiece's or, as Meta published Llama 3, a tiktoken file.
std::unique_ptr<Tokenizer> read_model_file(const std::string& directory, const TokenizerConfig& config) {
  const std::string path = directory + "/tokenizer.model";
  if (looks_like_tiktoken(host::read_file(path))) return read_tiktoken(path, directory, config);
  return read_sentencepiece(path, directory, config);
}

// Returns the tiktoken file of the directory: tiktoken.model, else the first *.tiktoken by name; "" where there is
// none.
std::string tiktoken_file(const std::string& directory) {
  std::string first = directory + "/tiktoken.model";
  if (file_exists(first)) return first;
  first.clear();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string path = directory + "/" + entry.path().filename().string();
    if (entry.path().extension() == ".tiktoken" && (first.empty() || path < first)) first = path;
  }
  return first;
}

// Appends the modules that a file of Python imports from beside it: `from .name import`.
void append_imports(const std::string& path, std::vector<std::string>& modules) {
  const Regex import_line(R"((?m)^\s*from\s+\.\K\w+)");
  const std::string source = valid_utf8(host::read_file(path));
  Span match;
  for (size_t at = 0; import_line.find(source, at, match); at = match.end)
    modules.push_back(source.substr(match.begin, match.size()));
}

// Appends the modules that a file's auto_map names.
void append_named(const nlohmann::json& file, std::vector<std::string>& modules) {
  for (const nlohmann::json& reference : file.value("auto_map", nlohmann::json()).flatten())
    if (reference.is_string()) modules.push_back(python_module(reference));
}

// Returns the directory's files of Python to which auto_map leads, each once: that of tokenizer_config.json and, for a
// model that transformers has no class for (Qwen 1), that of config.json.
std::vector<std::string> python_files(const std::string& directory) {
  std::vector<std::string> modules, found;
  append_named(read_tokenizer_config(directory).json, modules);
  if (const std::string path = directory + "/config.json"; file_exists(path)) {
    const nlohmann::json config = base::parse_json(host::read_file(path), path);
    if (config.is_object() && config.value("model_type", nlohmann::json()) == "qwen") append_named(config, modules);
  }
  for (size_t next = 0; next < modules.size(); ++next) {
    const std::string name = modules[next] + ".py", path = directory + "/" + name;
    if (!file_exists(path) || std::ranges::find(found, name) != found.end()) continue;
    found.push_back(name);
    append_imports(path, modules);
  }
  return found;
}

bool has_vocab_and_merges(const std::string& directory) {
  return file_exists(directory + "/vocab.json") && file_exists(directory + "/merges.txt");
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& directory) {
  if (!std::filesystem::is_directory(directory)) {
    if (std::filesystem::exists(directory))
      throw base::InputError(base::expectation("model " + directory, "a model directory", "a file",
                                               "the directory that has config.json, a tokenizer and such files"));
    const std::string near = base::nearest_path(directory);
    throw base::InputError(base::expectation("model " + directory, "a model directory", "nothing of that name",
                                             near.empty() ? host::hub_remedy(directory) : near));
  }
  if (const std::string base = host::base_directory(directory); base != directory && !has_tokenizer(directory))
    return load_tokenizer(base);
  const TokenizerConfig config = read_tokenizer_config(directory);
  if (file_exists(directory + "/tokenizer.json")) return read_tokenizer_json(directory, config);
  if (config.json.contains("char_ords")) return read_characters(directory, config);
  if (has_vocab_and_merges(directory)) return read_vocab_and_merges(directory, config);
  if (file_exists(directory + "/tokenizer.model")) return read_model_file(directory, config);
  if (const std::string path = tiktoken_file(directory); !path.empty()) return read_tiktoken(path, directory, config);
  const std::string below = base::directory_below(directory, "config.json");
  throw base::InputError(
      base::expectation("tokenizer " + directory,
                        "tokenizer.json, vocab.json with merges.txt, tokenizer.model, tiktoken.model, "
                        "qwen.tiktoken, or char_ords in tokenizer_config.json",
                        "no vocabulary", below.empty() ? "the model's complete directory" : below));
}

bool has_tokenizer(const std::string& directory) {
  return file_exists(directory + "/tokenizer.json") || has_vocab_and_merges(directory) ||
         file_exists(directory + "/tokenizer.model") || !tiktoken_file(directory).empty() ||
         read_tokenizer_config(directory).json.contains("char_ords");
}

std::span<const char* const> tokenizer_files() {
  static constexpr const char* kFiles[] = {"additional_chat_templates/tool_use.jinja",
                                           "tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "chat_template.jinja",
                                           "vocab.json",
                                           "merges.txt",
                                           "tokenizer.model",
                                           "tiktoken.model",
                                           "qwen.tiktoken",
                                           "config.json",
                                           "generation_config.json"};
  return kFiles;
}

std::vector<std::string> companion_files(const std::string& directory) {
  std::vector<std::string> found = python_files(directory);
  const std::filesystem::path folder = "additional_chat_templates";
  if (!std::filesystem::is_directory(directory / folder)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(directory / folder))
    if (entry.path().extension() == ".jinja") found.push_back((folder / entry.path().filename()).string());
  return found;
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
