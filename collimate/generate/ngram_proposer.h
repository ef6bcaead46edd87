#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace collimate::generate {

// Guesses how a text goes on from where its end has been before (prompt lookup decoding: Saxena 2023). Deterministic:
// an answer depends on the text alone. Each token is indexed once; a search looks at kMostPlaces places at most.
class NgramProposer {
 public:
  static constexpr int64_t kLeastMatch = 2;   // tokens that must have occurred together before
  static constexpr int64_t kMostMatch = 16;   // longer matches are not told apart
  static constexpr int64_t kMostPlaces = 32;  // the newest ones

  // Overwrites `proposed` with `most` tokens that followed the longest earlier occurrence of the end of `ids`, the
  // newest of those equally long; where what followed reaches the end of `ids`, it repeats. Empty without an
  // occurrence. `ids` begins with the ids of the call before.
  void propose(std::span<const int32_t> ids, int64_t most, std::vector<int32_t>& proposed);

  // Ready for another text; keeps memory.
  void reset();

 private:
  void index(std::span<const int32_t> ids);
  int64_t best_place(std::span<const int32_t> ids) const;

  // A place is the index of a token that follows a pair of tokens, so it is at least 2; 0: none.
  std::unordered_map<uint64_t, int32_t> newest_;  // place, by the pair before it
  std::vector<int32_t> earlier_;                  // by place: the next older one after the same pair
};

}  // namespace collimate::generate
