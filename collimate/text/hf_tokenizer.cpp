#include "collimate/text/hf_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"
#include "collimate/text/space_marks.h"
#include "collimate/text/word_cache.h"

namespace collimate::text {

// The buffers of one encode call.
struct HfTokenizer::Work {
  explicit Work(WordCache& words_met) : cache(words_met) {}
  WordCache& cache;
  std::vector<int32_t> ids;
  Pieces pieces;
};

HfTokenizer::HfTokenizer(TokenizerParts parts, TokenizerInfo info) : parts_(std::move(parts)) {
  info_ = std::move(info);
  for (const AddedToken& token : parts_.added) add_matcher(token);
  index_tokens();
  cache_owner_ = WordCache::new_owner();
  divide_at_marks_ = !parts_.pre_tokenizer.splits && parts_.model.model->falls_apart_at_marks();
}

void HfTokenizer::add_matcher(const AddedToken& token) {
  if (token.weighed) return;
  if (!token.normalized) return raw_matcher_.add(token);
  AddedToken spelled = token;  // matched in normalized text, so it is normalized itself
  if (!token.spelled)
    for (const TextStep& step : parts_.normalizer) step(spelled.content, {});
  normalized_matcher_.add(spelled);
}

void HfTokenizer::index_tokens() {
  tokens_ = parts_.model.vocabulary->tokens();
  for (const AddedToken& token : parts_.added) {
    tokens_.resize(std::max(tokens_.size(), static_cast<size_t>(token.id) + 1));
    tokens_[token.id] = token.content;
    added_ids_.emplace(token.content, token.id);
  }
  special_.resize(tokens_.size());
  verbatim_.resize(tokens_.size());
  for (const AddedToken& token : parts_.added) {
    special_[token.id] = token.special;
    verbatim_[token.id] = parts_.decoder.byte_level;  // nobody spelled its bytes
  }
  for (size_t id = 0; id < tokens_.size(); ++id) bytes_.push_back(decoded(id, {}));
}

// An id without a token has no text at any place.
std::string HfTokenizer::decoded(size_t id, TokenPlace place) const {
  const std::string& token = tokens_[id];
  return token.empty() || verbatim_[id] ? token : parts_.decoder.token(token, place);
}

std::vector<int32_t> HfTokenizer::encode(std::string_view text, EncodeOptions options) const {
  Work work(WordCache::of_thread(cache_owner_));
  work.ids.reserve(text.size() / 3 + 8);
  if (options.add_special && !options.continues) work.ids = parts_.before;
  run(text, options, work);
  if (options.add_special && !options.open_end)
    work.ids.insert(work.ids.end(), parts_.after.begin(), parts_.after.end());
  return std::move(work.ids);
}

void HfTokenizer::run(std::string_view text, EncodeOptions options, Work& work) const {
  Span match;
  int32_t id = 0;
  size_t at = 0;
  while (raw_matcher_.find(text, at, options.parse_special, match, id)) {
    if (match.begin > at) encode_segment(text.substr(at, match.begin - at), options, at == 0, work);
    work.ids.push_back(id);
    at = match.end;
  }
  if (at < text.size()) encode_segment(text.substr(at), options, at == 0, work);
}

void HfTokenizer::encode_segment(std::string_view text, EncodeOptions options, bool first, Work& work) const {
  SegmentPlace place{first, options.continues};
  std::string normalized(text);
  for (const TextStep& step : parts_.normalizer) step(normalized, place);
  Span match;
  int32_t id = 0;
  size_t at = 0;
  while (normalized_matcher_.find(normalized, at, options.parse_special, match, id)) {
    if (match.begin > at) encode_normalized(normalized.substr(at, match.begin - at), place, work);
    work.ids.push_back(id);
    at = match.end;
    place.first = false;
  }
  if (at < normalized.size()) encode_normalized(at == 0 ? std::move(normalized) : normalized.substr(at), place, work);
}

void HfTokenizer::encode_normalized(std::string text, SegmentPlace place, Work& work) const {
  work.pieces.text = std::move(text);
  parts_.pre_tokenizer.split(work.pieces, place);
  if (divide_at_marks_) {
    work.pieces.words.clear();
    divide_at_marks(work.pieces.text, work.pieces.words);
  }
  const std::string_view all = work.pieces.text;
  for (const Span& word : work.pieces.words) encode_word(all.substr(word.begin, word.size()), work);
}

void HfTokenizer::encode_word(std::string_view word, Work& work) const {
  if (word.empty() || work.cache.append(word, work.ids)) return;
  const size_t before = work.ids.size();
  parts_.model.model->encode(word, work.ids);
  work.cache.insert(word, std::span(work.ids).subspan(before));
}

std::string HfTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  for (const int32_t id : ids)
    if (id < 0) throw base::InputError(base::expectation("decode", "ids from 0", fmt::to_string(id)));
  return StreamDecoder(*this, skip_special).whole(ids);
}

std::string HfTokenizer::token_bytes(int32_t id, TokenPlace place) const {
  if (id < 0 || id >= vocab_size()) return {};
  return place.first || place.last ? decoded(static_cast<size_t>(id), place) : bytes_[id];
}

bool HfTokenizer::is_special(int32_t id) const { return id >= 0 && id < vocab_size() && special_[id]; }

std::optional<int32_t> HfTokenizer::id_of(std::string_view token) const {
  const auto found = added_ids_.find(std::string(token));
  return found != added_ids_.end() ? std::optional(found->second) : parts_.model.vocabulary->find(token);
}

void HfTokenizer::save(const std::string& directory) const {
  namespace fs = std::filesystem;
  std::vector<std::string> names = companion_files(info_.directory);
  for (const std::string name : tokenizer_files())
    if (name != "config.json" && name != "generation_config.json") names.push_back(name);  // the model's
  int written = 0;
  for (const std::string& name : names) {
    const fs::path from = fs::path(info_.directory) / name, to = fs::path(directory) / name;
    if (!file_exists(from.string())) continue;
    fs::create_directories(to.parent_path());
    host::write_file_atomically(to.string(), host::read_file(from.string()));
    ++written;
  }
  if (written == 0) throw base::RunError(fmt::format("[{}] the tokenizer's files are gone", info_.directory));
  copy_generation_config(info_.directory, directory);
}

}  // namespace collimate::text
