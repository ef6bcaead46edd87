#include "collimate/flow/planned_turns.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "collimate/base/error.h"

namespace collimate::flow {

using tensor::MemoryItem;

int64_t bytes_of(const std::vector<MemoryItem>& items) {
  int64_t sum = 0;
  for (const MemoryItem& item : items) sum += item.bytes;
  return sum;
}

base::MemoryItems named_items(const std::vector<MemoryItem>& items) {
  base::MemoryItems named;
  for (const MemoryItem& item : items) named.emplace_back(item.purpose, item.bytes);
  return named;
}

void require_room(int device, const std::vector<MemoryItem>& items, int64_t budget_bytes) {
  if (budget_bytes == 0 || bytes_of(items) <= budget_bytes) return;
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(items, [&](const MemoryItem& item) {
      const std::string_view purpose = item.purpose;
      return std::ranges::find(names, purpose.substr(purpose.find('/') + 1)) != names.end();
    });
  };
  std::vector<std::string> remedies;
  if (any({"activations", "logits", "workspace"})) remedies.emplace_back("a smaller train.micro_batch_tokens");
  if (any({"kv_cache"})) remedies.emplace_back("fewer rollout.cache_blocks");
  throw base::InputError(base::no_room_message(
      {.device = device, .budget_bytes = budget_bytes, .items = named_items(items), .when = "", .remedies = remedies}));
}

void add_items(std::vector<MemoryItem>& items, const std::vector<MemoryItem>& more) {
  for (const MemoryItem& item : more) {
    const auto known = std::ranges::find(items, item.purpose, &MemoryItem::purpose);
    if (known == items.end())
      items.push_back(item);
    else
      known->bytes = std::max(known->bytes, item.bytes);
  }
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void PlannedTurns::plan(const std::vector<MemoryItem>& items) {
  add_items(items_, items);
  add_items(always_, items);
}

void PlannedTurns::plan_turn(const std::vector<MemoryItem>& items) {
  add_items(items_, items);
  turns_.push_back(items);
}

std::vector<MemoryItem> PlannedTurns::largest_turn() const {
  std::vector<MemoryItem> largest = always_;
  for (const std::vector<MemoryItem>& turn : turns_) {
    std::vector<MemoryItem> together = always_;
    add_items(together, turn);
    if (bytes_of(together) > bytes_of(largest)) largest = std::move(together);
  }
  return largest;
}

int64_t PlannedTurns::bytes(int64_t budget_bytes) const {
  if (budget_bytes == 0) return bytes_of(largest_turn());
  return has_turns() ? std::min(bytes_of(items_), budget_bytes) : bytes_of(items_);
}

}  // namespace collimate::flow
