#include "collimate/text/hf_tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/files.h"
#include "collimate/text/utf8.h"
#include "collimate/text/word_cache.h"

namespace collimate::text {

namespace {

constexpr std::string_view kSpaceMark = "\u2581";

// Ends a word before every run of space marks.
void divide_at_marks(std::string_view text, std::vector<Span>& words) {
  size_t begin = 0;
  bool after_mark = true;
  for (size_t at = 0; at < text.size();) {
    const bool mark = text.substr(at, kSpaceMark.size()) == kSpaceMark;
    if (mark && !after_mark) {
      words.push_back({begin, at});
      begin = at;
    }
    after_mark = mark;
    at += mark ? kSpaceMark.size() : 1;
  }
  if (begin < text.size()) words.push_back({begin, text.size()});
}

}  // namespace

// Buffers of one encode call.
struct HfTokenizer::Work {
  explicit Work(WordCache& words_met) : cache(words_met) {}
  WordCache& cache;
  std::vector<int32_t> ids;
  std::vector<int32_t> symbols;
  std::vector<Span> words;
  std::string key;
  MergeScratch merge;
  bool after_unknown = false;
};

HfTokenizer::HfTokenizer(TokenizerParts parts, TokenizerInfo info) : parts_(std::move(parts)) {
  info_ = std::move(info);
  auto& model = parts_.model;
  for (const AddedToken& token : parts_.added) {
    if (static_cast<size_t>(token.id) >= model.tokens.size()) model.tokens.resize(token.id + 1);
    model.tokens[token.id] = token.content;
    model.ids.emplace(token.content, token.id);
    if (!token.normalized) {
      raw_matcher_.add(token);
      continue;
    }
    AddedToken spelled = token;  // matched in normalized text, so it is normalized itself
    for (const TextStep& step : parts_.normalizer) step(spelled.content, {});
    normalized_matcher_.add(spelled);
  }
  index_bytes();
  cache_owner_ = WordCache::new_owner();
  divide_at_spaces_ = parts_.pre_tokenizer.splitters.empty() && spaces_divide_words();
}

// Without a pre-tokenizer the whole text is one word; it falls apart at spaces when no token reaches over one, which
// keeps the ids and makes words short. The mark must be a token, so that no unk is fused across it.
bool HfTokenizer::spaces_divide_words() const {
  const auto& model = parts_.model;
  if (model.word_level || parts_.pre_tokenizer.byte_level || !model.ids.contains(std::string(kSpaceMark))) return false;
  return std::none_of(model.tokens.begin(), model.tokens.end(), [](const std::string& token) {
    std::vector<Span> words;
    divide_at_marks(token, words);
    return words.size() > 1;
  });
}

void HfTokenizer::index_bytes() {
  const auto& model = parts_.model;
  bytes_.reserve(model.tokens.size());
  for (const std::string& token : model.tokens) bytes_.push_back(parts_.decoder.token(token));
  special_.assign(bytes_.size(), 0);
  for (const AddedToken& token : parts_.added) {
    special_[token.id] = token.special;
    bytes_[token.id] = token.content;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelled = parts_.pre_tokenizer.byte_level ? to_byte_spelling(static_cast<unsigned char>(byte))
                                                                : fmt::format("<0x{:02X}>", byte);
    const auto found = model.ids.find(spelled);
    byte_ids_[byte] = found == model.ids.end() ? -1 : found->second;
  }
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
  for (const TextStep& step : parts_.pre_tokenizer.transforms) step(text, place);
  work.words.clear();
  divide_at_spaces_ ? divide_at_marks(text, work.words) : parts_.pre_tokenizer.split(text, work.words);
  for (const Span& word : work.words) encode_word(std::string_view(text).substr(word.begin, word.size()), work);
}

void HfTokenizer::encode_word(std::string_view word, Work& work) const {
  if (work.cache.append(word, work.ids)) return;
  const size_t before = work.ids.size();
  merge_word(word, work);
  work.cache.insert(word, std::span(work.ids).subspan(before));
}

void HfTokenizer::merge_word(std::string_view word, Work& work) const {
  const auto& model = parts_.model;
  work.symbols.clear();
  work.after_unknown = false;
  if (model.word_level || model.ignore_merges) {
    work.key.clear();
    if (parts_.pre_tokenizer.byte_level) {
      for (const char byte : word) work.key += to_byte_spelling(static_cast<unsigned char>(byte));
    } else {
      work.key = word;
    }
    const auto found = model.ids.find(work.key);
    if (found != model.ids.end()) return work.ids.push_back(found->second);
    if (model.word_level) {
      push_unknown(word, work);
      work.ids.insert(work.ids.end(), work.symbols.begin(), work.symbols.end());
      return;
    }
  }
  parts_.pre_tokenizer.byte_level ? byte_symbols(word, work) : character_symbols(word, work);
  apply_merges(model.merges, work.symbols, work.merge, work.ids);
  base::fault_count("tokenizer.merge_operations", work.merge.operations);
}

void HfTokenizer::byte_symbols(std::string_view word, Work& work) const {
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(word[i])];
    if (id >= 0) {
      work.symbols.push_back(id);
      work.after_unknown = false;
    } else {
      push_unknown(word.substr(i, 1), work);
    }
  }
}

void HfTokenizer::character_symbols(std::string_view word, Work& work) const {
  const auto& model = parts_.model;
  for (size_t at = 0; at < word.size();) {
    const size_t length = std::max<size_t>(1, utf8_length(word.substr(at, 4)));
    const std::string_view character = word.substr(at, length);
    at += length;
    work.key = character;
    const auto found = model.ids.find(work.key);
    if (found != model.ids.end()) {
      work.symbols.push_back(found->second);
      work.after_unknown = false;
      continue;
    }
    const auto has_byte = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; };
    if (model.byte_fallback && std::all_of(character.begin(), character.end(), has_byte)) {
      for (const char c : character) work.symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      work.after_unknown = false;
    } else {
      push_unknown(character, work);
    }
  }
}

void HfTokenizer::push_unknown(std::string_view bytes, Work& work) const {
  const auto& model = parts_.model;
  if (!model.unk) {
    throw base::InputError(
        base::expectation("tokenizer " + info_.directory, "text that its vocabulary can express",
                          fmt::format("'{}' (byte 0x{:02X})", valid_utf8(bytes), static_cast<unsigned char>(bytes[0])),
                          "a tokenizer with byte fallback or an unk token"));
  }
  if (model.fuse_unk && work.after_unknown) return;
  work.symbols.push_back(*model.unk);
  work.after_unknown = true;
}

std::string HfTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  for (const int32_t id : ids) {
    if (id < 0) throw base::InputError(base::expectation("decode", "ids from 0", fmt::to_string(id)));
    if (id < vocab_size() && !(skip_special && special_[id])) out += bytes_[id];
  }
  const std::string& strip = parts_.decoder.strip_start;
  if (!strip.empty() && out.starts_with(strip)) out.erase(0, strip.size());
  return out;
}

std::string HfTokenizer::token_bytes(int32_t id) const {
  return id >= 0 && id < vocab_size() ? bytes_[id] : std::string();
}

bool HfTokenizer::is_special(int32_t id) const { return id >= 0 && id < vocab_size() && special_[id]; }

std::optional<int32_t> HfTokenizer::id_of(std::string_view token) const {
  const auto found = parts_.model.ids.find(std::string(token));
  if (found == parts_.model.ids.end()) return std::nullopt;
  return found->second;
}

void HfTokenizer::save(const std::string& directory) const {
  namespace fs = std::filesystem;
  int written = 0;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                           "chat_template.jinja", "vocab.json", "merges.txt"}) {
    const fs::path from = fs::path(info_.directory) / name;
    if (!file_exists(from.string())) continue;
    host::write_file_atomically((fs::path(directory) / name).string(), host::read_file(from.string()));
    ++written;
  }
  if (written == 0) throw base::RunError(fmt::format("[{}] the tokenizer's files are gone", info_.directory));
  copy_generation_config(info_.directory, directory);
}

}  // namespace collimate::text
