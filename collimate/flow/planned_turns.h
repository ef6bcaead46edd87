#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/memory_words.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// Adds a module's items to a worker's, largest first. An item that is there already is shared by two modules, and the
// larger number counts.
void add_items(std::vector<tensor::MemoryItem>& items, const std::vector<tensor::MemoryItem>& more);

// A PlannedTurns holds the items that a worker's models take of its device, of which some are there in turn.
class PlannedTurns {
 public:
  // These add items that are always there, and items that are there together for a time, beside those.
  void plan(const std::vector<tensor::MemoryItem>& items);
  void plan_turn(const std::vector<tensor::MemoryItem>& items);

  bool has_turns() const { return !turns_.empty(); }
  const std::vector<tensor::MemoryItem>& items() const { return items_; }  // all items
  // Returns the items that are always there together with those of the turn that takes the most.
  std::vector<tensor::MemoryItem> largest_turn() const;
  // Returns the most that is there at one time. Without a budget that is the largest turn. With a budget models that
  // take turns stay as far as it goes, so it is all items or the budget, whichever is less.
  int64_t bytes(int64_t budget_bytes) const;

 private:
  std::vector<tensor::MemoryItem> items_, always_;
  std::vector<std::vector<tensor::MemoryItem>> turns_;
};

int64_t bytes_of(const std::vector<tensor::MemoryItem>& items);
// Returns items in the form of base/memory_words.h.
base::MemoryItems named_items(const std::vector<tensor::MemoryItem>& items);
// Throws InputError where a device's items, which are there at one time, take more than its budget (0: none).
void require_room(int device, const std::vector<tensor::MemoryItem>& items, int64_t budget_bytes);

}  // namespace collimate::flow
