#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/memory_words.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// Adds a module's items to a worker's, largest first. One that is there already is shared by two modules: the larger
// number counts.
void add_items(std::vector<tensor::MemoryItem>& items, const std::vector<tensor::MemoryItem>& more);

// The items that a worker's models take of its device, of which some are there in turn.
class PlannedTurns {
 public:
  // Items that are always there; and those that are there together for a time, beside these.
  void plan(const std::vector<tensor::MemoryItem>& items);
  void plan_turn(const std::vector<tensor::MemoryItem>& items);

  bool has_turns() const { return !turns_.empty(); }
  const std::vector<tensor::MemoryItem>& items() const { return items_; }  // of all
  // The items that are always there, with those of the turn that takes the most.
  std::vector<tensor::MemoryItem> largest_turn() const;
  // The most that is there at a time: that; with a budget, as models then stay as far as it goes, all or the budget.
  int64_t bytes(int64_t budget_bytes) const;

 private:
  std::vector<tensor::MemoryItem> items_, always_;
  std::vector<std::vector<tensor::MemoryItem>> turns_;
};

int64_t bytes_of(const std::vector<tensor::MemoryItem>& items);
// As base/memory_words.h has them.
base::MemoryItems named_items(const std::vector<tensor::MemoryItem>& items);
// InputError where a device's items, which are there at a time, are more than its budget (0: none).
void require_room(int device, const std::vector<tensor::MemoryItem>& items, int64_t budget_bytes);

}  // namespace collimate::flow
