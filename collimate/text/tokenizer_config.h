#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/text/added_tokens.h"
#include "collimate/text/harmony.h"
#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Holds tokenizer_config.json and the files that complete it; absent files leave their parts empty.
struct TokenizerConfig {
  nlohmann::json json = nlohmann::json::object();  // tokenizer_config.json itself
  std::string bos, eos, pad, unk, separator;       // as text
  std::optional<bool> add_bos, add_eos, add_prefix_space, legacy;
  nlohmann::json named = nlohmann::json::array();  // the special tokens' entries: texts, or objects with a "content"
  std::vector<AddedToken> added;                   // added_tokens_decoder, added_tokens.json
  std::vector<int32_t> eos_ids;                    // of generation_config.json, else config.json
  std::string chat_template, tool_template;        // the second for conversations with tools, "" where it is the same
};

// Throws InputError for a malformed file.
TokenizerConfig read_tokenizer_config(const std::string& directory);

// Returns the module of a class in auto_map: "tokenization_kimi" of "REPOSITORY--tokenization_kimi.TikTokenTokenizer".
std::string python_module(const std::string& reference);

// Reads one entry of "added_tokens" or "added_tokens_decoder".
AddedToken parse_added_token(int32_t id, const nlohmann::json& json);

// Makes the info of a tokenizer from its config, with ids in the place of names; `id_of` resolves them.
template <class IdOf>
TokenizerInfo make_info(const TokenizerConfig& config, const std::string& directory, IdOf id_of);

// Returns eos and eos_ids together, sorted, each once.
std::vector<int32_t> stop_ids(std::optional<int32_t> eos, const std::vector<int32_t>& eos_ids);

template <class IdOf>
TokenizerInfo make_info(const TokenizerConfig& config, const std::string& directory, IdOf id_of) {
  TokenizerInfo info;
  const auto resolve = [&](const std::string& name) -> std::optional<int32_t> {
    if (name.empty()) return std::nullopt;
    return id_of(name);
  };
  info.bos = resolve(config.bos);
  info.eos = resolve(config.eos);
  info.pad = resolve(config.pad);
  info.unk = resolve(config.unk);
  if (!info.eos && !config.eos_ids.empty()) info.eos = config.eos_ids.front();
  std::vector<int32_t> ends = config.eos_ids;
  if (config.eos == harmony::kReturn)  // a call of a tool ends a turn too, whatever the model's other files say
    if (const std::optional<int32_t> call = resolve(std::string(harmony::kCall))) ends.push_back(*call);
  info.stop_ids = stop_ids(info.eos, ends);
  info.chat_template = config.chat_template;
  info.tool_template = config.tool_template;
  info.separator = config.separator;
  info.directory = directory;
  return info;
}

}  // namespace collimate::text
