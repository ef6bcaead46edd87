#include "collimate/text/tokenizer_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"

namespace collimate::text {
namespace {

using nlohmann::json;

constexpr int64_t kMostTokens = int64_t{1} << 24;  // a hostile id must not make us allocate without bound

void read_vocabulary(const json& vocabulary, const std::string& where, VocabularyModel& model) {
  if (!vocabulary.is_object() || vocabulary.empty()) {
    throw base::InputError(
        base::expectation(where, "a vocabulary of tokens and ids", "none", "the model's complete directory"));
  }
  int64_t largest = -1;
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMostTokens) {
      throw base::InputError(
          base::expectation(where, fmt::format("an id below {} for '{}'", kMostTokens, token), id.dump()));
    }
    largest = std::max(largest, id.get<int64_t>());
  }
  model.tokens.resize(static_cast<size_t>(largest) + 1);
  model.ids.reserve(vocabulary.size() * 2);
  std::vector<bool> taken(model.tokens.size());
  for (const auto& [token, id] : vocabulary.items()) {
    std::string& place = model.tokens[id.get<size_t>()];
    if (taken[id.get<size_t>()])
      throw base::InputError(base::expectation(where, "an id of its own for each token",
                                               fmt::format("{} for both '{}' and '{}'", id.dump(), place, token)));
    taken[id.get<size_t>()] = true;
    place = token;
    model.ids.emplace(token, id.get<int32_t>());
  }
}

int32_t id_in_merge(const VocabularyModel& model, const std::string& token, const std::string& where, size_t rank) {
  const auto found = model.ids.find(token);
  if (found == model.ids.end()) {
    throw base::InputError(base::expectation(where, fmt::format("merge {} of tokens in the vocabulary", rank),
                                             fmt::format("'{}'", token)));
  }
  return found->second;
}

void add_merge(const std::string& left, const std::string& right, const std::string& where, size_t rank,
               VocabularyModel& model) {
  const int32_t left_id = id_in_merge(model, left, where, rank);
  const int32_t right_id = id_in_merge(model, right, where, rank);
  const int32_t merged = id_in_merge(model, left + right, where, rank);
  model.merges.insert(left_id, right_id, {static_cast<int32_t>(rank), merged});
}

// "left right"; where tokens hold spaces themselves, the first space that leaves tokens on both sides divides.
void add_merge_line(const std::string& line, const std::string& where, size_t rank, VocabularyModel& model) {
  size_t space = line.find(' ');
  for (size_t at = space; at != std::string::npos; at = line.find(' ', at + 1)) {
    const std::string left = line.substr(0, at);
    const std::string right = line.substr(at + 1);
    if (!model.ids.contains(left) || !model.ids.contains(right) || !model.ids.contains(left + right)) continue;
    space = at;
    break;
  }
  if (space == std::string::npos) {
    throw base::InputError(
        base::expectation(where, fmt::format("two tokens in merge {}", rank), fmt::format("'{}'", line)));
  }
  add_merge(line.substr(0, space), line.substr(space + 1), where, rank, model);
}

// Each merge is "left right" or ["left", "right"].
void read_merges(const json& merges, const std::string& where, VocabularyModel& model) {
  model.merges = MergeTable(merges.size());
  size_t rank = 0;
  for (const json& merge : merges) {
    if (merge.is_array() && merge.size() == 2) {
      add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(), where, rank, model);
    } else {
      add_merge_line(merge.get_ref<const std::string&>(), where, rank, model);
    }
    ++rank;
  }
}

// Options that change ids and that we do not have: an error rather than other ids.
void refuse_option(const json& model, const char* key, const std::string& where) {
  const auto found = model.find(key);
  if (found == model.end() || found->is_null() || (found->is_string() && found->get<std::string>().empty())) return;
  throw base::InputError(base::expectation(where, fmt::format("no model option '{}'", key), found->dump()));
}

VocabularyModel read_model(const json& file, const std::string& where) {
  const auto found = file.find("model");
  if (found == file.end() || !found->is_object() || !found->contains("vocab")) {
    throw base::InputError(
        base::expectation(where, "a model with a vocabulary", "none", "the model's complete directory"));
  }
  const json& json_model = *found;
  const std::string type = json_model.value("type", json_model.contains("merges") ? "BPE" : "");
  if (type != "BPE" && type != "WordLevel") unknown_component(where, "model", type, "BPE, WordLevel");
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    refuse_option(json_model, key, where);
  }
  VocabularyModel model;
  read_vocabulary(json_model.at("vocab"), where, model);
  model.word_level = type == "WordLevel";
  if (!model.word_level) read_merges(json_model.at("merges"), where, model);
  model.byte_fallback = json_model.value("byte_fallback", false);
  model.fuse_unk = json_model.value("fuse_unk", false);
  model.ignore_merges = json_model.value("ignore_merges", false);
  if (const auto unk = json_model.find("unk_token"); unk != json_model.end() && unk->is_string()) {
    const auto id = model.ids.find(unk->get<std::string>());
    if (id != model.ids.end()) model.unk = id->second;
  }
  return model;
}

// Ids that a post-processor puts before and after a single text.
void read_post_processor(const json& processor, const std::string& where, TokenizerParts& parts) {
  if (processor.is_null()) return;
  const std::string type = processor.at("type");
  if (type == "ByteLevel") return;  // concerns offsets only
  if (type == "Sequence") {
    for (const json& part : processor.at("processors")) read_post_processor(part, where, parts);
    return;
  }
  if (type != "TemplateProcessing") {
    unknown_component(where, "post-processor", type, "TemplateProcessing, ByteLevel, Sequence");
  }
  bool after = false;
  for (const json& piece : processor.at("single")) {
    if (piece.contains("Sequence")) {
      after = true;
      continue;
    }
    const std::string name = piece.at("SpecialToken").at("id");
    for (const json& id : processor.at("special_tokens").at(name).at("ids")) {
      (after ? parts.after : parts.before).push_back(id.get<int32_t>());
    }
  }
}

bool has_template(const json& processor) {
  if (!processor.is_object()) return false;
  if (processor.value("type", "") == "TemplateProcessing") return true;
  const auto parts = processor.find("processors");
  return parts != processor.end() && std::any_of(parts->begin(), parts->end(), has_template);
}

void check_added(const AddedToken& token, const std::string& where) {
  if (token.id < 0 || token.id >= kMostTokens) {
    throw base::InputError(base::expectation(where, fmt::format("an id below {} for '{}'", kMostTokens, token.content),
                                             fmt::to_string(token.id)));
  }
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
    check_added(token, where);
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
    const bool known = (id >= 0 && static_cast<size_t>(id) < parts.model.tokens.size()) ||
                       std::any_of(parts.added.begin(), parts.added.end(), is_it);
    if (known) continue;
    throw base::InputError(base::expectation(where, "a post-processor of known tokens", fmt::format("id {}", id)));
  }
}

std::optional<int32_t> find_token(const TokenizerParts& parts, const std::string& name) {
  for (const AddedToken& token : parts.added) {
    if (token.content == name) return token.id;
  }
  const auto found = parts.model.ids.find(name);
  if (found == parts.model.ids.end()) return std::nullopt;
  return found->second;
}

TokenizerInfo info_for(const TokenizerParts& parts, const TokenizerConfig& config, const std::string& directory) {
  TokenizerInfo info = make_info(config, directory, [&](const std::string& name) { return find_token(parts, name); });
  info.kind = parts.model.word_level           ? "one id per word"
              : parts.pre_tokenizer.byte_level ? "byte-level BPE"
              : parts.model.byte_fallback      ? "SentencePiece BPE with byte fallback"
                                               : "BPE";
  return info;
}

json member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? json() : *found;
}

std::unique_ptr<HfTokenizer> build(const json& file, const std::string& path, const std::string& directory,
                                   const TokenizerConfig& config) {
  TokenizerParts parts;
  parts.model = read_model(file, path);
  read_added(file, config, path, parts);
  parts.normalizer = parse_normalizer(member(file, "normalizer"), path);
  parts.pre_tokenizer = parse_pre_tokenizer(member(file, "pre_tokenizer"), path);
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
