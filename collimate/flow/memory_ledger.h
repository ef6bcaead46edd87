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

  // Items of a module, as add_items.
  void plan(const std::vector<tensor::MemoryItem>& items);
  int64_t planned_bytes() const;
  // InputError naming the items, largest first, when their sum is above the budget.
  void check_budget() const;

  // Around a call: the most that the worker held during it.
  void begin_call();
  int64_t call_bytes() const { return tensor::memory_peak(worker_); }

  // {"worker", "budget_bytes", "planned_bytes", "peak_bytes", "items": [{"item", "planned_bytes", "peak_bytes"}]},
  // largest item first; what nobody planned has planned_bytes 0.
  nlohmann::json report() const;

 private:
  int worker_;
  int64_t budget_bytes_;
  int64_t peak_bytes_ = 0;  // of the calls before the present one
  std::vector<tensor::MemoryItem> items_;
};

}  // namespace collimate::flow
