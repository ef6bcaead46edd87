#pragma once

namespace collimate::shape {

// A RankOf is one of several ranks that share something; `What` makes a type of its own for each kind of sharing.
template <class What>
struct RankOf {
  int rank = 0;
  int ranks = 1;
  bool operator==(const RankOf&) const = default;
  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank + 1 == ranks; }
};

}  // namespace collimate::shape
