#include "collimate/flow/memory_ledger.h"

#include <algorithm>

namespace collimate::flow {
namespace {

using tensor::MemoryItem;

auto by_name(const std::string& purpose) {
  return [&purpose](const auto& item) { return item.purpose == purpose; };
}

}  // namespace

MemoryLedger::MemoryLedger(int worker, int64_t budget_bytes) : worker_(worker), budget_bytes_(budget_bytes) {
  tensor::set_memory_budget(worker, budget_bytes);
  tensor::reset_memory_peaks(worker);
}

MemoryLedger::~MemoryLedger() { tensor::set_memory_budget(worker_, 0); }

void MemoryLedger::check_budget() const { require_room(worker_, planned_.largest_turn(), budget_bytes_); }

void MemoryLedger::begin_call() {
  peak_bytes_ = std::max(peak_bytes_, call_bytes());
  tensor::reset_memory_peak(worker_);
}

nlohmann::json MemoryLedger::report() const {
  std::vector<tensor::MemoryUse> held = tensor::memory_report();
  std::erase_if(held, [&](const tensor::MemoryUse& use) { return use.worker != worker_; });
  nlohmann::json items = nlohmann::json::array();
  const auto add = [&](const std::string& item, int64_t planned, int64_t peak) {
    items.push_back({{"item", item}, {"planned_bytes", planned}, {"peak_bytes", peak}});
  };
  for (const MemoryItem& item : planned_.items()) {
    const auto use = std::find_if(held.begin(), held.end(), by_name(item.purpose));
    add(item.purpose, item.bytes, use == held.end() ? 0 : use->peak_bytes);
  }
  for (const tensor::MemoryUse& use : held)
    if (std::ranges::find(planned_.items(), use.purpose, &MemoryItem::purpose) == planned_.items().end())
      add(use.purpose, 0, use.peak_bytes);
  return {{"worker", worker_},
          {"budget_bytes", budget_bytes_},
          {"planned_bytes", planned_bytes()},
          {"peak_bytes", std::max(peak_bytes_, call_bytes())},
          {"items", std::move(items)}};
}

}  // namespace collimate::flow
