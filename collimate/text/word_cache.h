#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/string_map.h"

namespace collimate::text {

// Keeps the ids of words that a thread has met, so that common words are merged once. Each thread has one cache, of the
// tokenizer that it used last; it is bounded in size, and emptied when full.
class WordCache {
 public:
  static constexpr size_t kLongestWord = 48;  // bytes; longer words are rare and not kept

  // Returns this thread's cache, emptied if it was another owner's. An owner is a number that is never used again.
  static WordCache& of_thread(uint64_t owner);
  static uint64_t new_owner();

  // Appends the ids of `word` to `out` and returns true when it is known.
  bool append(std::string_view word, std::vector<int32_t>& out) const;
  // Does nothing for a word that is too long.
  void insert(std::string_view word, std::span<const int32_t> ids);

 private:
  struct Range {
    uint32_t begin = 0;
    uint32_t count = 0;
  };
  void clear();

  uint64_t owner_ = 0;
  StringMap<Range> words_;
  std::vector<int32_t> ids_;
};

}  // namespace collimate::text
