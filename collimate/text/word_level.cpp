#include "collimate/text/word_level.h"

#include <algorithm>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/text/utf8.h"

namespace collimate::text {

void cannot_express(const std::string& where, std::string_view bytes) {
  throw base::InputError(
      base::expectation(where, "text that its vocabulary can express",
                        fmt::format("'{}' (byte 0x{:02X})", valid_utf8(bytes), static_cast<unsigned char>(bytes[0])),
                        "a tokenizer with byte fallback or an unk token"));
}

void WordLevel::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const auto id = vocabulary_->find(word);
  if (!id && !unk_) cannot_express(where_, word);
  ids.push_back(id ? *id : *unk_);
}

WordPiece::WordPiece(std::shared_ptr<const Vocabulary> vocabulary, Options options)
    : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
  for (const std::string& token : vocabulary_->tokens()) longest_token_ = std::max(longest_token_, token.size());
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  if (cut(word, ids)) return;
  ids.resize(before);
  ids.push_back(options_.unk);
}

bool WordPiece::cut(std::string_view word, std::vector<int32_t>& ids) const {
  if (base::characters_in(word) > options_.longest_word) return false;
  for (size_t at = 0; at < word.size();) {
    int32_t id = 0;
    const size_t size = longest(word.substr(at), at > 0, id);
    if (size == 0) return false;
    ids.push_back(id);
    at += size;
  }
  return true;
}

size_t WordPiece::longest(std::string_view rest, bool inside, int32_t& id) const {
  static thread_local std::string key;
  key.assign(inside ? options_.prefix : "");
  const size_t prefix = key.size();
  key += rest.substr(0, longest_token_ - std::min(longest_token_, prefix));
  for (; key.size() > prefix; key.pop_back()) {
    const auto found = vocabulary_->find(key);
    if (!found) continue;
    id = *found;
    return key.size() - prefix;
  }
  return 0;
}

}  // namespace collimate::text
