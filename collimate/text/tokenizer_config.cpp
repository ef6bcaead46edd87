#include "collimate/text/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/host/base_model.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"

namespace collimate::text {
namespace {

using nlohmann::json;

constexpr const char* kToolTemplateFile = "/additional_chat_templates/tool_use.jinja";

json read_optional(const std::string& path) {
  if (!file_exists(path)) return json::object();
  json value = read_json_file(path);
  if (!value.is_object()) throw base::InputError(base::expectation(path, "a JSON object", value.type_name()));
  return value;
}

// Returns what `read` makes of a file's content; a value of another type than it reads is an InputError that names the
// file.
template <class Read>
auto from_file(const std::string& path, Read read) {
  try {
    return read();
  } catch (const json::exception& error) {
    throw base::InputError(base::expectation(path, "a file of the Hugging Face form", error.what()));
  }
}

// Returns the text of a special token, which is written as text, as {"content": text}, or null.
std::string token_text(const json& entry) {
  if (entry.is_string()) return entry.get<std::string>();
  if (entry.is_object()) return entry.value("content", "");
  return "";
}

std::optional<bool> optional_flag(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

// Returns the templates by name: files of their own take precedence over the config, which has one text or a list of
// {name, template}.
std::map<std::string, std::string> read_chat_templates(const json& config, const std::string& directory) {
  std::map<std::string, std::string> templates;
  for (const auto& [name, file] : {std::pair{"default", "/chat_template.jinja"}, {"tool_use", kToolTemplateFile}})
    if (file_exists(directory + file)) templates[name] = host::read_file(directory + file);
  if (!templates.empty()) return templates;
  const json own = config.value("chat_template", json());
  if (own.is_string()) return {{"default", own}};
  if (!own.is_array()) return {};
  for (const json& entry : own)
    if (entry.is_object()) templates[entry.at("name")] = entry.at("template");
  return templates;
}

// Sets the templates as transformers does: "tool_use" is for conversations with tools, "default" for all others.
void set_chat_templates(const std::map<std::string, std::string>& templates, const std::string& path,
                        TokenizerConfig& config) {
  if (templates.empty()) return;
  if (!templates.contains("default")) {
    std::vector<std::string> names;
    for (const auto& [name, source] : templates) names.push_back(name);
    throw base::InputError(base::expectation(path, "a chat template named default",
                                             fmt::format("{}", fmt::join(names, ", ")), "one of them by that name"));
  }
  config.chat_template = templates.at("default");
  if (const auto found = templates.find("tool_use"); found != templates.end()) config.tool_template = found->second;
}

// Returns the ids that end a text. Adapters with a tokenizer have the configs of the model that they belong to.
std::vector<int32_t> read_eos_ids(const std::string& directory) {
  for (const std::string& path :
       {generation_config_path(directory), host::base_directory(directory) + "/config.json"}) {
    const json config = read_optional(path);
    const auto found = config.find("eos_token_id");
    if (found == config.end()) continue;
    if (found->is_number_integer()) return {found->get<int32_t>()};
    if (!found->is_array()) continue;
    return from_file(path, [&] { return found->get<std::vector<int32_t>>(); });
  }
  return {};
}

void read_added_decoder(const std::string& path, TokenizerConfig& config) {
  const auto decoder = config.json.find("added_tokens_decoder");
  if (decoder == config.json.end() || !decoder->is_object()) return;
  for (const auto& [key, value] : decoder->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      throw base::InputError(base::expectation(path, "token ids as keys of added_tokens_decoder", "'" + key + "'"));
    }
    config.added.push_back(parse_added_token(id, value));
  }
}

// Reads added_tokens.json, the older form: {"token": id}. Tokens that the config names are special.
void read_older_added(const std::string& path, TokenizerConfig& config) {
  const json names = config.json.value("additional_special_tokens", json::array());
  const json older = read_optional(path);
  for (const auto& [content, id] : older.items()) {
    AddedToken token{.id = id.get<int32_t>(), .content = content};
    const auto same = [&](const AddedToken& other) { return other.id == token.id; };
    if (std::any_of(config.added.begin(), config.added.end(), same)) continue;
    const std::string* named[] = {&config.bos, &config.eos, &config.pad, &config.unk, &config.separator};
    token.special =
        std::any_of(std::begin(named), std::end(named), [&](const auto* name) { return *name == token.content; }) ||
        std::find(names.begin(), names.end(), json(content)) != names.end();
    config.added.push_back(std::move(token));
  }
}

}  // namespace

std::string python_module(const std::string& reference) {
  const size_t mark = reference.find("--");
  const std::string name = mark == std::string::npos ? reference : reference.substr(mark + 2);
  return name.substr(0, name.find('.'));
}

AddedToken parse_added_token(int32_t id, const json& json) {
  AddedToken token;
  token.id = id;
  token.content = json.at("content");
  token.special = json.value("special", false);
  token.normalized = json.value("normalized", false);
  token.single_word = json.value("single_word", false);
  token.left_strip = json.value("lstrip", false);
  token.right_strip = json.value("rstrip", false);
  return token;
}

TokenizerConfig read_tokenizer_config(const std::string& directory) {
  TokenizerConfig config;
  const std::string path = directory + "/tokenizer_config.json";
  config.json = read_optional(path);
  const std::string map_path = directory + "/special_tokens_map.json";
  const json map = read_optional(map_path);
  const auto named = [&](const char* key) {
    const bool own = config.json.contains(key);
    const json entry = (own ? config.json : map).value(key, json());
    const std::string text = from_file(own ? path : map_path, [&] { return token_text(entry); });
    if (!text.empty()) config.named.push_back(entry);
    return text;
  };
  config.bos = named("bos_token");
  config.eos = named("eos_token");
  config.pad = named("pad_token");
  config.unk = named("unk_token");
  config.separator = named("sep_token");
  named("cls_token");
  named("mask_token");
  for (const json& further : config.json.value("additional_special_tokens", json())) config.named.push_back(further);
  config.add_bos = optional_flag(config.json, "add_bos_token");
  config.add_eos = optional_flag(config.json, "add_eos_token");
  config.add_prefix_space = optional_flag(config.json, "add_prefix_space");
  config.legacy = optional_flag(config.json, "legacy");
  from_file(path, [&] { read_added_decoder(path, config); });
  const std::string older = directory + "/added_tokens.json";
  from_file(older, [&] { read_older_added(older, config); });
  config.eos_ids = read_eos_ids(directory);
  set_chat_templates(from_file(path, [&] { return read_chat_templates(config.json, directory); }), path, config);
  return config;
}

std::vector<int32_t> stop_ids(std::optional<int32_t> eos, const std::vector<int32_t>& eos_ids) {
  std::vector<int32_t> ids = eos_ids;
  if (eos) ids.push_back(*eos);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace collimate::text
