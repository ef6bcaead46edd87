#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/string_map.h"

namespace collimate::text {

// Holds tokens as a tokenizer's file spells them, and their ids.
class Vocabulary {
 public:
  // Throws InputError, which names `where`, for an id that is out of range or another token's, and for a token that is
  // there already.
  void add(const std::string& token, int64_t id, const std::string& where);
  std::optional<int32_t> find(std::string_view token) const;
  // Returns the tokens by id; empty where an id is unused.
  const std::vector<std::string>& tokens() const { return tokens_; }
  void reserve(size_t tokens) { ids_.reserve(tokens); }

 private:
  std::vector<std::string> tokens_;
  StringMap<int32_t> ids_;
};

// Throws InputError, which names `where`, for an id that no vocabulary has: a hostile one must not make us allocate
// without bound.
void check_token_id(int64_t id, const std::string& token, const std::string& where);

// Returns the ids of "<0x00>" to "<0xFF>" by byte, -1 where the vocabulary has none.
std::vector<int32_t> byte_fallback_ids(const Vocabulary& vocabulary);

}  // namespace collimate::text
