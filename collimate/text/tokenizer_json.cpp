#include "collimate/text/tokenizer_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/text/component.h"
#include "collimate/text/files.h"

namespace collimate::text {
namespace {

using nlohmann::json;

// What a template puts before and after a single text, outside of what others put there.
void read_template(const json& processor, TokenizerParts& parts) {
  std::vector<int32_t> before;
  bool after = false;
  for (const json& piece : processor.at("single")) {
    if (piece.contains("Sequence")) {
      after = true;
      continue;
    }
    const std::string name = piece.at("SpecialToken").at("id");
    for (const json& id : processor.at("special_tokens").at(name).at("ids"))
      (after ? parts.after : before).push_back(id.get<int32_t>());
  }
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
}

// Ids that a post-processor puts before and after a single text.
void read_post_processor(const json& processor, const std::string& where, TokenizerParts& parts) {
  if (processor.is_null()) return;
  const std::string type = processor.at("type");
  if (type == "ByteLevel") return;  // concerns offsets only
  if (type == "Sequence") {
    for (const json& part : processor.at("processors")) read_post_processor(part, where, parts);
  } else if (type == "TemplateProcessing") {
    read_template(processor, parts);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {  // each as ["token", id]
    parts.before.insert(parts.before.begin(), processor.at("cls").at(1).get<int32_t>());
    parts.after.push_back(processor.at("sep").at(1).get<int32_t>());
  } else {
    unknown_component(where, "post-processor", type,
                      "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing");
  }
}

bool has_template(const json& processor) {
  if (!processor.is_object()) return false;
  if (const std::string type = processor.value("type", ""); type != "Sequence") return type != "ByteLevel";
  const auto parts = processor.find("processors");
  return parts != processor.end() && std::any_of(parts->begin(), parts->end(), has_template);
}

// tokenizer.json's own added tokens, then those that only tokenizer_config.json has.
void read_added(const json& file, const TokenizerConfig& config, const std::string& where, TokenizerParts& parts) {
  if (const auto added = file.find("added_tokens"); added != file.end()) {
    for (const json& token : *added) parts.added.push_back(parse_added_token(token.at("id"), token));
  }
  const size_t own = parts.added.size();
  for (const AddedToken& token : config.added) {
    const auto same = [&](const AddedToken& other) { return other.id == token.id; };
    if (std::none_of(parts.added.begin(), parts.added.begin() + static_cast<std::ptrdiff_t>(own), same)) {
      parts.added.push_back(token);
    }
  }
  std::map<int32_t, std::string> texts;
  for (const AddedToken& token : parts.added) {
    check_token_id(token.id, token.content, where);
    const std::string& text = texts.emplace(token.id, token.content).first->second;
    if (text != token.content)
      throw base::InputError(base::expectation(where, fmt::format("one text of the added token {}", token.id),
                                               fmt::format("'{}' and '{}'", text, token.content)));
  }
}

// Without a template in tokenizer.json, tokenizer_config.json's add_bos_token and add_eos_token decide.
void add_configured_specials(const TokenizerConfig& config, const TokenizerInfo& info, TokenizerParts& parts) {
  if (config.add_bos.value_or(false) && info.bos) parts.before = {*info.bos};
  if (config.add_eos.value_or(false) && info.eos) parts.after = {*info.eos};
}

// The ids around a text must be tokens.
void check_template(const TokenizerParts& parts, const std::string& where) {
  std::vector<int32_t> ids = parts.before;
  ids.insert(ids.end(), parts.after.begin(), parts.after.end());
  for (const int32_t id : ids) {
    const auto is_it = [&](const AddedToken& token) { return token.id == id; };
    const bool known = (id >= 0 && static_cast<size_t>(id) < parts.model.vocabulary->tokens().size()) ||
                       std::any_of(parts.added.begin(), parts.added.end(), is_it);
    if (known) continue;
    throw base::InputError(base::expectation(where, "a post-processor of known tokens", fmt::format("id {}", id)));
  }
}

std::optional<int32_t> find_token(const TokenizerParts& parts, const std::string& name) {
  for (const AddedToken& token : parts.added) {
    if (token.content == name) return token.id;
  }
  return parts.model.vocabulary->find(name);
}

TokenizerInfo info_for(const TokenizerParts& parts, const TokenizerConfig& config, const std::string& directory) {
  TokenizerInfo info = make_info(config, directory, [&](const std::string& name) { return find_token(parts, name); });
  info.kind = parts.model.model->kind();
  return info;
}

json member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? json() : *found;
}

std::unique_ptr<HfTokenizer> build(const json& file, const std::string& path, const std::string& directory,
                                   const TokenizerConfig& config) {
  TokenizerParts parts;
  parts.pre_tokenizer = parse_pre_tokenizer(member(file, "pre_tokenizer"), path);
  parts.model = parse_model(file, path, parts.pre_tokenizer.byte_level);
  if (parts.pre_tokenizer.byte_level && !parts.model.byte_level) spell_bytes(parts.pre_tokenizer);
  read_added(file, config, path, parts);
  parts.normalizer = parse_normalizer(member(file, "normalizer"), path);
  parts.decoder = parse_decoder(member(file, "decoder"), path);
  read_post_processor(member(file, "post_processor"), path, parts);
  TokenizerInfo info = info_for(parts, config, directory);
  if (!has_template(member(file, "post_processor"))) add_configured_specials(config, info, parts);
  check_template(parts, path);
  return std::make_unique<HfTokenizer>(std::move(parts), std::move(info));
}

constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json pre_tokenizer_of(const TokenizerConfig& config) {
  const json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", config.json.value("add_prefix_space", false)}, {"use_regex", true}};
  if (!config.json.value("tokenizer_class", "").starts_with("Qwen2")) return bytes;
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", kQwen2Pattern}}}, {"behavior", "Isolated"}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

json read_merges_text(const std::string& path) {
  json merges = json::array();
  const std::string content = host::read_file(path);
  std::string_view rest = content;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::string(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return merges;
}

}  // namespace

std::unique_ptr<HfTokenizer> read_tokenizer_json(const std::string& directory, const TokenizerConfig& config) {
  const std::string path = directory + "/tokenizer.json";
  const json file = read_json_file(path);
  try {
    return build(file, path, directory, config);
  } catch (const json::exception& error) {
    throw base::InputError(base::expectation(path, "a tokenizer.json of the Hugging Face form", error.what()));
  }
}

std::unique_ptr<HfTokenizer> read_vocab_and_merges(const std::string& directory, const TokenizerConfig& config) {
  const std::string path = directory + "/vocab.json";
  const bool qwen2 = config.json.value("tokenizer_class", "").starts_with("Qwen2");
  json file = {{"model", {{"type", "BPE"}}}, {"pre_tokenizer", pre_tokenizer_of(config)}};
  file["model"]["vocab"] = read_json_file(path);
  file["model"]["merges"] = read_merges_text(directory + "/merges.txt");
  file["decoder"] = {{"type", "ByteLevel"}};
  if (qwen2) file["normalizer"] = {{"type", "NFC"}};
  try {
    return build(file, path, directory, config);
  } catch (const json::exception& error) {
    throw base::InputError(base::expectation(path, "a vocabulary of tokens and ids", error.what()));
  }
}

}  // namespace collimate::text
