#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "collimate/base/immovable.h"
#include "collimate/flow/planned_turns.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// The ledger compares what one worker was planned to take of its device's memory with what it took. Used by the
// worker's thread alone.
class MemoryLedger : private base::Immovable {
 public:
  // Sets the worker's budget in the allocator (0: none) and starts its peaks.
  MemoryLedger(int worker, int64_t budget_bytes);
  ~MemoryLedger();

  void plan(PlannedTurns planned) { planned_ = std::move(planned); }
  int64_t planned_bytes() const { return planned_.bytes(budget_bytes_); }
  // InputError naming the items, largest first, when those that are there at a time are above the budget.
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
  PlannedTurns planned_;
};

}  // namespace collimate::flow
