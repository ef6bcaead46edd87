#include "collimate/text/tiktoken.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/text/byte_spelling.h"
#include "collimate/text/charsmap.h"
#include "collimate/text/sentencepiece.h"
#include "collimate/text/tokenizer_parts.h"

namespace collimate::text {
namespace {

// Holds what a family knows beside its file.
struct Family {
  const char* pattern = "";
  const char* normalizer = nullptr;  // of the whole text, before special tokens are looked for
  std::vector<std::string> specials;
  std::string bos, eos, pad;
};

// Describes Qwen 1 (tokenization_qwen.py of its models).
Family qwen() {
  Family family{.pattern = kQwen2Pattern,
                .normalizer = "NFC",
                .specials = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"},
                .eos = "<|endoftext|>",
                .pad = "<|endoftext|>"};
  for (int i = 0; i < 205; ++i) family.specials.push_back(fmt::format("<|extra_{}|>", i));
  return family;
}

// Describes Llama 3 (llama/tokenizer.py of meta-llama/llama3).
Family llama3() {
  Family family{.pattern = kLlama3Pattern, .bos = "<|begin_of_text|>", .eos = "<|end_of_text|>"};
  const auto reserved = [](int i) { return fmt::format("<|reserved_special_token_{}|>", i); };
  family.specials = {family.bos,  family.eos,  reserved(0),           reserved(1),
                     reserved(2), reserved(3), "<|start_header_id|>", "<|end_header_id|>",
                     reserved(4), "<|eot_id|>"};
  for (int i = 5; i < 251; ++i) family.specials.push_back(reserved(i));
  return family;
}

// Describes Moonlight and Kimi (tokenization_moonshot.py of moonshotai/Moonlight-16B-A3B and tokenization_kimi.py of
// moonshotai/Kimi-K2-Instruct), whose patterns are one. The config names some of the 256 ids behind the ranks, which
// begin at `first`; the others are reserved.
Family moonshot(const std::string& path, const TokenizerConfig& config, int32_t first) {
  if (config.added.empty())
    throw base::InputError(base::expectation(path, "special tokens in tokenizer_config.json (added_tokens_decoder)",
                                             "none", "the model's complete directory"));
  Family family{.pattern = kMoonshotPattern, .bos = "[BOS]", .eos = "[EOS]"};
  for (int32_t id = first; id < first + 256; ++id) family.specials.push_back(fmt::format("<|reserved_token_{}|>", id));
  return family;
}

// Returns the file of Python that a config names as its tokenizer's ("tokenization_kimi"), or "".
std::string tokenizer_module(const TokenizerConfig& config) {
  const nlohmann::json map = config.json.value("auto_map", nlohmann::json::object());
  nlohmann::json named = map.is_object() ? map.value("AutoTokenizer", nlohmann::json()) : nlohmann::json();
  if (named.is_array() && !named.empty()) named = nlohmann::json(named[0]);
  return named.is_string() ? python_module(named) : "";
}

// Returns the family of a file. Throws InputError for one of another class, which may split in another way. `first` is
// the id of the first special token.
Family family_of(const std::string& path, const TokenizerConfig& config, int32_t first) {
  const std::string name = std::filesystem::path(path).filename().string(), module = tokenizer_module(config);
  const std::string kind = config.json.value("tokenizer_class", "");
  const std::array<std::string_view, 5> generic = {"", "PreTrainedTokenizerFast", "PreTrainedTokenizer",
                                                   "LlamaTokenizer", "LlamaTokenizerFast"};
  if (name == "qwen.tiktoken") return qwen();
  if (name == "tokenizer.model" && std::find(generic.begin(), generic.end(), kind) != generic.end()) return llama3();
  if (name == "tiktoken.model" && (module == "tokenization_moonshot" || module == "tokenization_kimi"))
    return moonshot(path, config, first);
  throw base::InputError(base::expectation(path,
                                           "qwen.tiktoken, tokenizer.model of Llama 3, or tiktoken.model of Moonlight "
                                           "or Kimi (auto_map of tokenization_moonshot or tokenization_kimi)",
                                           fmt::format("{} of '{}' ({})", name, kind, module),
                                           "the model's tokenizer.json, which says how a text is split"));
}

// Adds the token of a line "dGhl 1820": a token in base64, and its rank.
void add_line(std::string_view line, const std::string& where, Vocabulary& vocabulary) {
  const size_t space = std::min(line.find(' '), line.size());
  int64_t rank = -1;
  const char* begin = line.data() + std::min(space + 1, line.size());
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), rank);
  if (error != std::errc() || end != line.data() + line.size())
    throw base::InputError(base::expectation(where, "a token in base64, a space and its rank",
                                             fmt::format("'{}'", base::beginning_of(line, 80))));
  vocabulary.add(byte_spelling_of(from_base64(line.substr(0, space), where)), rank, where);
}

std::shared_ptr<const Vocabulary> read_ranks(const std::string& path) {
  auto vocabulary = std::make_shared<Vocabulary>();
  const std::string content = host::read_file(path);
  std::string_view rest = content;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) add_line(rest.substr(0, end), fmt::format("{}:{}", path, number), *vocabulary);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return vocabulary;
}

// Adds the family's special tokens, with ids from `first`, but for those that the config names.
void add_specials(const Family& family, const TokenizerConfig& config, int32_t first, TokenizerParts& parts) {
  for (int32_t id = first; const std::string& special : family.specials) {
    const auto same = [&](const AddedToken& token) { return token.id == id; };
    if (std::none_of(config.added.begin(), config.added.end(), same))
      parts.added.push_back(
          {.id = id, .content = special, .special = true, .normalized = family.normalizer != nullptr});
    ++id;
  }
}

void name_if_unnamed(std::string& own, const std::string& name) {
  if (own.empty()) own = name;
}

}  // namespace

bool looks_like_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  const size_t space = line.find(' ');
  const auto printable = [](char c) { return c > 0x20 && c < 0x7F; };
  return space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(space), printable) &&
         std::isdigit(static_cast<unsigned char>(line[space + 1])) != 0;
}

std::unique_ptr<HfTokenizer> read_tiktoken(const std::string& path, const std::string& directory,
                                           TokenizerConfig config) {
  TokenizerParts parts;
  parts.model.vocabulary = read_ranks(path);
  const auto first = static_cast<int32_t>(parts.model.vocabulary->tokens().size());
  const Family family = family_of(path, config, first);
  parts.model.byte_level = true;
  const auto merges = merges_to_tokens(*parts.model.vocabulary, [](int32_t id) { return id; });
  parts.model.model = std::make_unique<BpeModel>(
      parts.model.vocabulary, merges, BpeModel::Options{.ignore_merges = true, .byte_level = true, .where = path});
  if (family.normalizer != nullptr) parts.normalizer = parse_normalizer({{"type", family.normalizer}}, path);
  parts.pre_tokenizer = parse_pre_tokenizer(split_bytes(family.pattern), path);
  parts.decoder = parse_decoder({{"type", "ByteLevel"}}, path);
  add_specials(family, config, first, parts);
  name_if_unnamed(config.bos, family.bos);
  name_if_unnamed(config.eos, family.eos);
  name_if_unnamed(config.pad, family.pad);
  return assemble(std::move(parts), config, {.directory = directory, .path = path});
}

}  // namespace collimate::text
