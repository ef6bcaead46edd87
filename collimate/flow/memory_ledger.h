#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// Adds a module's items to a worker's, largest first. One that is there already is shared by two modules: the larger
// number counts.
void add_items(std::vector<tensor::MemoryItem>& items, const std::vector<tensor::MemoryItem>& more);

// The ledger compares what one worker was planned to take of its device's memory with what it took. Used by the
// worker's thread alone.
class MemoryLedger : private base::Immovable {
 public:
  // Sets the worker's budget in the allocator (0: none) and starts its peaks.
  MemoryLedger(int worker, int64_t budget_bytes);
  ~MemoryLedger();

  // Items of a module, as add_items; of one that takes turns with others they are there for a time only.
  void plan(const std::vector<tensor::MemoryItem>& items);
  void plan_turn(const std::vector<tensor::MemoryItem>& items);
  // All of them; where modules take turns the budget, if that is less, as the schedule keeps to it.
  int64_t planned_bytes() const;
  // InputError naming the items, largest first, when the sum of those that are always there, with those of any one
  // module that takes turns, is above the budget.
  void check_budget() const;

  // Around a call: the most that the worker held during it.
  void begin_call();
  int64_t call_bytes() const { return tensor::memory_peak(worker_); }

  // {"worker", "budget_bytes", "planned_bytes", "peak_bytes", "items": [{"item", "planned_bytes", "peak_bytes"}]},
  // largest item first; what nobody planned has planned_bytes 0.
  nlohmann::json report() const;

 private:
  void check_together(const std::vector<tensor::MemoryItem>& items) const;

  int worker_;
  int64_t budget_bytes_;
  int64_t peak_bytes_ = 0;                              // of the calls before the present one
  std::vector<tensor::MemoryItem> items_;               // of all
  std::vector<tensor::MemoryItem> always_;              // of those that take no turns
  std::vector<std::vector<tensor::MemoryItem>> turns_;  // of each that does
};

}  // namespace collimate::flow
