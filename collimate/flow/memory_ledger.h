#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "collimate/base/immovable.h"
#include "collimate/flow/planned_turns.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// A MemoryLedger compares how much of its device's memory one worker was planned to take with how much it took. Only
// the worker's thread uses it.
class MemoryLedger : private base::Immovable {
 public:
  // Sets the worker's budget in the allocator (0: none) and starts measuring its peaks.
  MemoryLedger(int worker, int64_t budget_bytes);
  ~MemoryLedger();

  void plan(PlannedTurns planned) { planned_ = std::move(planned); }
  int64_t planned_bytes() const { return planned_.bytes(budget_bytes_); }
  // Throws InputError naming the items, largest first, when those that are there at one time are above the budget.
  void check_budget() const;

  // These stand around a call: call_bytes() is the most that the worker held since begin_call().
  void begin_call();
  int64_t call_bytes() const { return tensor::memory_peak(worker_); }

  // Returns {"worker", "budget_bytes", "planned_bytes", "peak_bytes", "items": [{"item", "planned_bytes",
  // "peak_bytes"}]}, with the planned items first, largest first; items that nobody planned have planned_bytes 0.
  nlohmann::json report() const;

 private:
  int worker_;
  int64_t budget_bytes_;
  int64_t peak_bytes_ = 0;  // of the calls before the present one
  PlannedTurns planned_;
};

}  // namespace collimate::flow
