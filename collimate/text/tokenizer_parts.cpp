#include "collimate/text/tokenizer_parts.h"

#include <algorithm>
#include <map>

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

// Adds to the vocabulary file's own added tokens those that only the files beside it have. Throws InputError for an id
// with two texts.
void add_configured(const TokenizerConfig& config, const std::string& where, TokenizerParts& parts) {
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

// Adds bos and eos as tokenizer_config.json's add_bos_token and add_eos_token say, which decide without a template.
void add_configured_specials(const TokenizerConfig& config, const TokenizerInfo& info, TokenizerParts& parts) {
  if (config.add_bos.value_or(false) && info.bos) parts.before = {*info.bos};
  if (config.add_eos.value_or(false) && info.eos) parts.after = {*info.eos};
}

// Throws InputError where an id around a text is no token.
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

}  // namespace

std::unique_ptr<HfTokenizer> assemble(TokenizerParts parts, const TokenizerConfig& config, const TokenizerFile& file) {
  add_configured(config, file.path, parts);
  TokenizerInfo info = info_for(parts, config, file.directory);
  if (!file.templated) add_configured_specials(config, info, parts);
  check_template(parts, file.path);
  return std::make_unique<HfTokenizer>(std::move(parts), std::move(info));
}

nlohmann::json split_bytes(const char* pattern) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

}  // namespace collimate::text
