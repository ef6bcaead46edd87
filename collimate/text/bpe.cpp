#include "collimate/text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace collimate::text {
namespace {

constexpr uint64_t kEmpty = ~uint64_t{0};
constexpr size_t kScanLimit = 24;  // up to it, scanning for the lowest rank beats a queue

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

void rank_pair(const MergeTable& table, MergeScratch& scratch, int32_t at) {
  auto& symbol = scratch.symbols[at];
  symbol.rank = -1;
  if (symbol.next < 0) return;
  ++scratch.operations;
  const MergeTable::Merge merge = table.find(symbol.id, scratch.symbols[symbol.next].id);
  symbol.rank = merge.rank;
  symbol.merged = merge.id;
}

void link_symbols(const MergeTable& table, std::span<const int32_t> word, MergeScratch& scratch) {
  const auto count = static_cast<int32_t>(word.size());
  scratch.symbols.resize(word.size());
  for (int32_t i = 0; i < count; ++i) {
    scratch.symbols[i] = {word[i], i - 1, i + 1 < count ? i + 1 : -1, -1, -1};
  }
  for (int32_t i = 0; i < count; ++i) rank_pair(table, scratch, i);
}

// Joins the symbol at `at` with its right neighbour and ranks the two pairs that changed.
void merge_at(const MergeTable& table, MergeScratch& scratch, int32_t at) {
  auto& symbols = scratch.symbols;
  const int32_t gone = symbols[at].next;
  symbols[at].id = symbols[at].merged;
  symbols[at].next = symbols[gone].next;
  symbols[gone].rank = -1;
  if (symbols[at].next >= 0) symbols[symbols[at].next].previous = at;
  rank_pair(table, scratch, at);
  if (symbols[at].previous >= 0) rank_pair(table, scratch, symbols[at].previous);
}

void merge_by_scan(const MergeTable& table, MergeScratch& scratch) {
  while (true) {
    int32_t best = -1;
    for (int32_t i = 0; i >= 0; i = scratch.symbols[i].next) {
      ++scratch.operations;
      const int32_t rank = scratch.symbols[i].rank;
      if (rank >= 0 && (best < 0 || rank < scratch.symbols[best].rank)) best = i;
    }
    if (best < 0) return;
    merge_at(table, scratch, best);
  }
}

void push(MergeScratch& scratch, int32_t at) {
  if (at < 0 || scratch.symbols[at].rank < 0) return;
  ++scratch.operations;
  scratch.queue.push_back(key_of(scratch.symbols[at].rank, at));
  std::push_heap(scratch.queue.begin(), scratch.queue.end(), std::greater<>());
}

// An entry is stale when the pair at its position has another rank by now.
void merge_by_queue(const MergeTable& table, MergeScratch& scratch) {
  auto& queue = scratch.queue;
  queue.clear();
  for (size_t i = 0; i < scratch.symbols.size(); ++i) {
    if (scratch.symbols[i].rank >= 0) queue.push_back(key_of(scratch.symbols[i].rank, static_cast<int32_t>(i)));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const uint64_t entry = queue.back();
    queue.pop_back();
    ++scratch.operations;
    const auto at = static_cast<int32_t>(entry & 0xFFFFFFFF);
    if (scratch.symbols[at].rank != static_cast<int32_t>(entry >> 32)) continue;
    merge_at(table, scratch, at);
    push(scratch, at);
    push(scratch, scratch.symbols[at].previous);
  }
}

}  // namespace

MergeTable::MergeTable(size_t merges) {
  const size_t size = std::bit_ceil(std::max<size_t>(merges * 2, 16));
  slots_.assign(size, {kEmpty, {}});
  shift_ = 64 - std::countr_zero(size);
}

size_t MergeTable::home(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ULL) >> shift_; }

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t slot = home(key);
  while (slots_[slot].key != kEmpty && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = {key, merge};
}

MergeTable::Merge MergeTable::find(int32_t left, int32_t right) const {
  const uint64_t key = key_of(left, right);
  size_t slot = home(key);
  while (slots_[slot].key != kEmpty) {
    if (slots_[slot].key == key) return slots_[slot].merge;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return {};
}

void apply_merges(const MergeTable& table, std::span<const int32_t> word, MergeScratch& scratch,
                  std::vector<int32_t>& out) {
  if (word.empty()) return;
  link_symbols(table, word, scratch);
  if (word.size() <= kScanLimit) {
    merge_by_scan(table, scratch);
  } else {
    merge_by_queue(table, scratch);
  }
  for (int32_t i = 0; i >= 0; i = scratch.symbols[i].next) out.push_back(scratch.symbols[i].id);
}

}  // namespace collimate::text
