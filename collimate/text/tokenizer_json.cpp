#include "collimate/text/tokenizer_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/text/component.h"
#include "collimate/text/files.h"
#include "collimate/text/tokenizer_parts.h"

namespace collimate::text {
namespace {

using nlohmann::json;

// Reads what a template puts before and after a single text, outside of what earlier processors put there.
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

// Reads the ids that a post-processor puts before and after a single text.
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
  if (const auto added = file.find("added_tokens"); added != file.end()) {
    for (const json& token : *added) parts.added.push_back(parse_added_token(token.at("id"), token));
  }
  parts.normalizer = parse_normalizer(member(file, "normalizer"), path);
  parts.decoder = parse_decoder(member(file, "decoder"), path);
  const json processor = member(file, "post_processor");
  read_post_processor(processor, path, parts);
  return assemble(std::move(parts), config,
                  {.directory = directory, .path = path, .templated = has_template(processor)});
}

json pre_tokenizer_of(const TokenizerConfig& config) {
  const json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", config.add_prefix_space.value_or(false)}, {"use_regex", true}};
  if (!config.json.value("tokenizer_class", "").starts_with("Qwen2")) return bytes;
  return split_bytes(kQwen2Pattern);
}

// Returns the special tokens that the config names and the vocabulary has: no word contains them, as in transformers.
// The entry of a token in added_tokens_decoder takes precedence.
json named_tokens(const TokenizerConfig& config, const json& vocab) {
  std::set<std::string> seen;
  for (const AddedToken& token : config.added) seen.insert(token.content);
  json tokens = json::array();
  for (const json& entry : config.named) {
    json token = entry.is_object() ? entry : json{{"content", entry}};
    const std::string text = token.at("content");
    if (!vocab.contains(text) || !seen.insert(text).second) continue;
    token.update({{"id", vocab.at(text)}, {"special", true}});
    tokens.push_back(std::move(token));
  }
  return tokens;
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
    file["added_tokens"] = named_tokens(config, file["model"]["vocab"]);
    return build(file, path, directory, config);
  } catch (const json::exception& error) {
    throw base::InputError(base::expectation(path, "a vocabulary of tokens and ids", error.what()));
  }
}

}  // namespace collimate::text
