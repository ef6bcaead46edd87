#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace collimate::text {

// Maps (left id, right id) to (rank, id of the merged token). The table uses open addressing and is immutable after the
// last insert.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;  // -1: this pair does not merge
    int32_t id = -1;
  };
  explicit MergeTable(size_t merges = 0);
  // A pair that is inserted again takes the later merge.
  void insert(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key;
    Merge merge;
  };
  size_t home(uint64_t key) const;
  std::vector<Slot> slots_;
  int shift_ = 63;
};

// Working memory of apply_merges, reused from word to word. `operations` counts table look-ups and queue moves, so that
// a test can see how the work grows.
struct MergeScratch {
  struct Symbol {
    int32_t id, previous, next;
    int32_t rank, merged;  // of the pair (this, next); rank -1 when it does not merge or this symbol is gone
  };
  std::vector<Symbol> symbols;
  std::vector<uint64_t> queue;  // min-heap of rank << 32 | position
  int64_t operations = 0;
};

// Encodes one word by byte pair encoding (Sennrich et al. 2016): merges the pair of the lowest rank, the leftmost of
// equal ones, until no pair merges, and appends the ids to `out`. Takes O(n log n) in the word's symbols.
void apply_merges(const MergeTable& table, std::span<const int32_t> word, MergeScratch& scratch,
                  std::vector<int32_t>& out);

}  // namespace collimate::text
