#include "collimate/text/character_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/text/files.h"
#include "collimate/text/regex.h"
#include "collimate/text/tokenizer_config.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using nlohmann::json;

std::optional<int32_t> special_id(const CharacterVocabulary& vocabulary, const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto found = std::find(vocabulary.specials.begin(), vocabulary.specials.end(), name);
  if (found == vocabulary.specials.end()) {
    throw base::InputError(
        base::expectation("character tokenizer", "bos, eos, pad and unk among the specials", "'" + name + "'"));
  }
  return static_cast<int32_t>(found - vocabulary.specials.begin());
}

// Returns a pattern of the tokens of several characters, longest first, and then any single character.
std::string split_pattern(const std::vector<std::string>& tokens) {
  std::vector<std::string> longer;
  for (const std::string& token : tokens) {
    if (utf8_length(token) != token.size()) longer.push_back(token);
  }
  std::stable_sort(longer.begin(), longer.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  std::string pattern;
  for (const std::string& token : longer) pattern += regex_escape(token) + "|";
  return pattern + ".|\\n";
}

json added_tokens(const CharacterVocabulary& vocabulary) {
  json added = json::array();
  for (size_t id = 0; id < vocabulary.specials.size(); ++id) {
    added.push_back({{"id", id},
                     {"content", vocabulary.specials[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  return added;
}

// Returns the post-processor that puts bos before a text; null without bos.
json post_processor(const std::string& bos, const std::optional<int32_t>& id) {
  if (!id) return nullptr;
  const json special = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
  const auto sequence = [](const char* name) { return json{{"Sequence", {{"id", name}, {"type_id", 0}}}}; };
  json tokens = json::object();
  tokens[bos] = {{"id", bos}, {"ids", json::array({*id})}, {"tokens", json::array({bos})}};
  return {{"type", "TemplateProcessing"},
          {"single", json::array({special, sequence("A")})},
          {"pair", json::array({special, sequence("A"), sequence("B")})},
          {"special_tokens", tokens}};
}

json optional_text(const std::string& text) { return text.empty() ? json() : json(text); }

}  // namespace

CharacterTokenizer::CharacterTokenizer(CharacterVocabulary vocabulary, const std::vector<int32_t>& stop,
                                       const std::string& directory)
    : vocabulary_(std::move(vocabulary)) {
  index();
  info_.bos = special_id(vocabulary_, vocabulary_.bos);
  info_.eos = special_id(vocabulary_, vocabulary_.eos);
  info_.pad = special_id(vocabulary_, vocabulary_.pad);
  info_.unk = special_id(vocabulary_, vocabulary_.unk);
  special_id(vocabulary_, vocabulary_.separator);
  info_.separator = vocabulary_.separator;
  info_.stop_ids = text::stop_ids(info_.eos, stop);
  info_.chat_template = vocabulary_.chat_template;
  info_.directory = directory;
  info_.kind = "characters";
}

void CharacterTokenizer::index() {
  tokens_ = vocabulary_.specials;
  tokens_.insert(tokens_.end(), vocabulary_.tokens.begin(), vocabulary_.tokens.end());
  if (vocabulary_.tokens.empty()) {
    throw base::InputError(base::expectation("character tokenizer", "at least one character", "none"));
  }
  for (size_t id = 0; id < tokens_.size(); ++id) {
    const bool fresh = ids_.emplace(tokens_[id], static_cast<int32_t>(id)).second;
    if (tokens_[id].empty() || !fresh || !is_valid_utf8(tokens_[id])) {
      throw base::InputError(base::expectation("character tokenizer", "distinct non-empty tokens in UTF-8",
                                               fmt::format("'{}' at {}", valid_utf8(tokens_[id]), id)));
    }
    longest_ = std::max(longest_, tokens_[id].size());
  }
}

size_t CharacterTokenizer::match(std::string_view text, bool parse_special, int32_t& id) const {
  const auto specials = static_cast<int32_t>(vocabulary_.specials.size());
  const auto known = [&](size_t length, bool special) {
    const auto found = ids_.find(std::string(text.substr(0, length)));
    if (found == ids_.end() || (found->second < specials) != special) return false;
    id = found->second;
    return true;
  };
  const size_t longest = std::min(longest_, text.size());
  for (size_t length = longest; parse_special && length > 0; --length) {
    if (known(length, true)) return length;
  }
  for (size_t length = longest; length > 0; --length) {
    if (known(length, false)) return length;
  }
  id = -1;
  return std::max<size_t>(1, utf8_length(text.substr(0, 4)));
}

std::vector<int32_t> CharacterTokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() + 1);
  if (options.add_special && !options.continues && info_.bos) ids.push_back(*info_.bos);
  for (size_t at = 0; at < text.size();) {
    int32_t id = -1;
    const size_t length = match(text.substr(at), options.parse_special, id);
    if (id < 0 && !info_.unk) {
      throw base::InputError(base::expectation("character tokenizer", "characters of its vocabulary",
                                               fmt::format("'{}' at byte {}", valid_utf8(text.substr(at, length)), at),
                                               "a vocabulary with an unk token"));
    }
    ids.push_back(id < 0 ? *info_.unk : id);
    at += length;
  }
  return ids;
}

std::string CharacterTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  for (const int32_t id : ids) {
    if (id < 0) throw base::InputError(base::expectation("decode", "ids from 0", fmt::to_string(id)));
    if (!(skip_special && is_special(id))) out += token_bytes(id);
  }
  return out;
}

std::string CharacterTokenizer::token_bytes(int32_t id, TokenPlace /*place*/) const {
  return id >= 0 && id < vocab_size() ? tokens_[id] : std::string();
}

bool CharacterTokenizer::is_special(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < vocabulary_.specials.size();
}

std::optional<int32_t> CharacterTokenizer::id_of(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

void CharacterTokenizer::save(const std::string& directory) const {
  json vocabulary = json::object();
  for (size_t id = 0; id < tokens_.size(); ++id) vocabulary[tokens_[id]] = id;
  const json file = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added_tokens(vocabulary_)},
                     {"normalizer", nullptr},
                     {"pre_tokenizer",
                      {{"type", "Split"},
                       {"pattern", {{"Regex", split_pattern(vocabulary_.tokens)}}},
                       {"behavior", "Isolated"},
                       {"invert", false}}},
                     {"post_processor", post_processor(vocabulary_.bos, info_.bos)},
                     {"decoder", {{"type", "Fuse"}}},
                     {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", vocabulary_.unk}}}};
  json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"bos_token", optional_text(vocabulary_.bos)},
                 {"eos_token", optional_text(vocabulary_.eos)},  {"pad_token", optional_text(vocabulary_.pad)},
                 {"unk_token", optional_text(vocabulary_.unk)},  {"sep_token", optional_text(vocabulary_.separator)},
                 {"clean_up_tokenization_spaces", false}};
  if (!vocabulary_.chat_template.empty()) config["chat_template"] = vocabulary_.chat_template;
  host::write_file_atomically(directory + "/tokenizer.json", file.dump(1) + "\n");
  host::write_file_atomically(directory + "/tokenizer_config.json", config.dump(1) + "\n");
  if (!info_.directory.empty()) copy_generation_config(info_.directory, directory);
}

}  // namespace collimate::text
