#include "collimate/text/bpe_model.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/text/byte_spelling.h"
#include "collimate/text/characters.h"
#include "collimate/text/space_marks.h"

namespace collimate::text {
namespace {

int32_t id_in_merge(const Vocabulary& vocabulary, const std::string& token, const std::string& where, int32_t rank) {
  if (const auto id = vocabulary.find(token)) return *id;
  throw base::InputError(
      base::expectation(where, fmt::format("merge {} of tokens in the vocabulary", rank), fmt::format("'{}'", token)));
}

std::vector<int32_t> byte_level_ids(const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (int byte = 0; byte < 256; ++byte)
    ids.push_back(vocabulary.find(to_byte_spelling(static_cast<unsigned char>(byte))).value_or(-1));
  return ids;
}

}  // namespace

BpeModel::BpeModel(std::shared_ptr<const Vocabulary> vocabulary, const Merges& merges, Options options)
    : vocabulary_(std::move(vocabulary)),
      merges_(merges.size()),
      options_(std::move(options)),
      byte_ids_(options_.byte_level ? byte_level_ids(*vocabulary_) : byte_fallback_ids(*vocabulary_)) {
  for (const Merge& merge : merges) add_merge(merge);
}

// The right part of a merge stands inside a word and begins with the prefix; the merged token drops that prefix.
void BpeModel::add_merge(const Merge& merge) {
  const auto id = [&](const std::string& token) {
    return id_in_merge(*vocabulary_, token, options_.where, merge.rank);
  };
  const int32_t left = id(merge.left), right = id(merge.right);
  const size_t prefix = std::min(options_.prefix.size(), merge.right.size());
  merges_.insert(left, right, {merge.rank, id(merge.left + merge.right.substr(prefix))});
}

std::string BpeModel::kind() const {
  if (options_.byte_level) return "byte-level BPE";
  return options_.byte_fallback ? "SentencePiece BPE with byte fallback" : "BPE";
}

// A text falls apart at its marks when no token reaches over one. The mark must be a token, so that no unk is fused
// across it.
bool BpeModel::falls_apart_at_marks() const {
  if (options_.byte_level || !options_.prefix.empty() || !options_.suffix.empty()) return false;
  const auto& tokens = vocabulary_->tokens();
  return vocabulary_->find(kSpaceMark) && std::all_of(tokens.begin(), tokens.end(), [](const std::string& token) {
           std::vector<Span> words;
           divide_at_marks(token, words);
           return words.size() <= 1;
         });
}

void BpeModel::encode(std::string_view word, std::vector<int32_t>& ids) const {
  static thread_local std::vector<int32_t> symbols;
  static thread_local MergeScratch scratch;
  if (options_.ignore_merges) {
    if (const auto id = whole_word(word)) return ids.push_back(*id);
  }
  symbols.clear();
  options_.byte_level ? byte_symbols(word, symbols) : character_symbols(word, symbols);
  scratch.operations = 0;
  apply_merges(merges_, symbols, scratch, ids);
  base::fault_count("tokenizer.merge_operations", scratch.operations);
}

std::optional<int32_t> BpeModel::whole_word(std::string_view word) const {
  if (!options_.byte_level) return vocabulary_->find(word);
  static thread_local std::string key;
  key.clear();
  append_byte_spelling(key, word);
  return vocabulary_->find(key);
}

void BpeModel::byte_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  bool unk_waits = false;
  for (size_t at = 0; at < word.size(); ++at) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(word[at])];
    id < 0 ? push_unknown(word.substr(at, 1), unk_waits, symbols) : push_token(id, unk_waits, symbols);
  }
  if (unk_waits) symbols.push_back(*options_.unk);
}

void BpeModel::character_symbols(std::string_view word, std::vector<int32_t>& symbols) const {
  static thread_local std::string spelled;
  bool unk_waits = false;
  for (size_t at = 0; at < word.size();) {
    const size_t size = character_at(word, at).size;
    spelled.assign(at > 0 ? options_.prefix : "");
    spelled += word.substr(at, size);
    at += size;
    if (at == word.size()) spelled += options_.suffix;
    push_character(spelled, unk_waits, symbols);
  }
  if (unk_waits) symbols.push_back(*options_.unk);
}

void BpeModel::push_character(std::string_view spelled, bool& unk_waits, std::vector<int32_t>& symbols) const {
  const auto fallback = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  const auto has_byte = [&](char c) { return fallback(c) >= 0; };
  if (const auto id = vocabulary_->find(spelled)) return push_token(*id, unk_waits, symbols);
  if (!options_.byte_fallback || !std::all_of(spelled.begin(), spelled.end(), has_byte))
    return push_unknown(spelled, unk_waits, symbols);
  std::transform(spelled.begin(), spelled.end(), std::back_inserter(symbols), fallback);
}

void BpeModel::push_token(int32_t id, bool& unk_waits, std::vector<int32_t>& symbols) const {
  if (unk_waits) symbols.push_back(*options_.unk);
  unk_waits = false;
  symbols.push_back(id);
}

void BpeModel::push_unknown(std::string_view bytes, bool& unk_waits, std::vector<int32_t>& symbols) const {
  if (!options_.unk && options_.drops_unknown) return;
  if (!options_.unk) cannot_express(options_.where, bytes);
  if (unk_waits && !options_.fuse_unk) symbols.push_back(*options_.unk);
  unk_waits = true;
}

}  // namespace collimate::text
