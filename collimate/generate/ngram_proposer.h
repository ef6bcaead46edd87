#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace collimate::generate {

// Guesses how a text goes on by an earlier place where its last tokens occur (prompt lookup decoding: Saxena 2023).
// Deterministic: a guess depends on the text alone. Each token is indexed once; a search looks at kMostPlaces places at
// most.
class NgramProposer {
 public:
  static constexpr int64_t kLeastMatch = 2;   // tokens that must have occurred together before
  static constexpr int64_t kMostMatch = 16;   // longer matches count as this long
  static constexpr int64_t kMostPlaces = 32;  // the newest ones

  // Overwrites `proposed` with the `most` tokens that followed the longest earlier occurrence of the end of `ids`, the
  // newest one of equally long ones. If fewer tokens follow there, they are repeated. `proposed` is empty if there is
  // no occurrence. `ids` must begin with the ids of the call before.
  void propose(std::span<const int32_t> ids, int64_t most, std::vector<int32_t>& proposed);

  // Forgets the text, so that another one may follow, but keeps the memory.
  void reset();

 private:
  void index(std::span<const int32_t> ids);
  int64_t best_place(std::span<const int32_t> ids) const;

  // A place is the index of a token that follows a pair of tokens, so it is at least 2; 0: none.
  std::unordered_map<uint64_t, int32_t> newest_;  // place, by the pair before it
  std::vector<int32_t> earlier_;                  // by place: the next older one after the same pair
};

}  // namespace collimate::generate
