#include "collimate/base/memory_words.h"

#include <algorithm>
#include <iterator>

#include "collimate/base/error.h"

namespace collimate::base {
namespace {

constexpr std::pair<std::string_view, std::string_view> kItems[] = {
    {"master", "trained weights, in 32 bits"},
    {"values", "weights"},
    {"panels", "weights, packed for matrix products"},
    {"factors", "factors of the weights' rows (DoRA)"},
    {"gradient", "gradients"},
    {"optimizer", "optimizer state (two moments)"},
    {"average", "moving average of the weights"},
    {"activations", "activations kept for the backward pass"},
    {"logits", "logits kept for the backward pass"},
    {"workspace", "results passed between layers"},
    {"kv_cache", "keys and values (the KV cache)"},
    {"scratch", "working memory of single operations"},
    {"tensors", "rows of data, and results of a pass"},
    {"routed_experts", "experts of cached tokens"},
    {"untagged", "everything else"}};

std::string words_of_item(std::string_view name) {
  const auto* const known = std::ranges::find(kItems, name, [](const auto& item) { return item.first; });
  return std::string(known == std::end(kItems) ? name : known->second);
}

int64_t sum_of(const MemoryItems& items, size_t first = 0) {
  int64_t sum = 0;
  for (size_t i = first; i < items.size(); ++i) sum += items[i].second;
  return sum;
}

}  // namespace

std::string byte_size(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  constexpr double kNextUnit = 1024, kFourDigits = 999.5;
  size_t unit = 0;
  for (; bytes >= kNextUnit && unit + 1 < std::size(kUnits); ++unit) bytes /= kNextUnit;
  const std::string number = bytes < kFourDigits ? fmt::format("{:.3g}", bytes) : fmt::format("{:.0f}", bytes);
  return fmt::format("{} {}", number, kUnits[unit]);
}

std::string memory_words(std::string_view item) {
  const size_t slash = item.find('/');
  if (slash == std::string_view::npos) return words_of_item(item);
  return fmt::format("{}: {}", item.substr(0, slash), words_of_item(item.substr(slash + 1)));
}

std::string memory_text(MemoryItems items) {
  constexpr size_t kNamed = 5;
  std::ranges::stable_sort(items, std::ranges::greater(), [](const auto& item) { return item.second; });
  std::string text;
  const size_t named = items.size() > kNamed + 1 ? kNamed : items.size();
  for (size_t i = 0; i < named; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", memory_words(items[i].first),
                        byte_size(static_cast<double>(items[i].second)));
  if (named == items.size()) return text;
  return text + fmt::format(", {} smaller items {}", items.size() - named,
                            byte_size(static_cast<double>(sum_of(items, named))));
}

std::string no_room_message(const NoRoom& no_room) {
  constexpr int64_t kMebi = 1 << 20;
  const int64_t needed = sum_of(no_room.items);
  std::string remedy = fmt::format("run.memory_budget: {}", (needed + kMebi - 1) / kMebi);
  for (size_t i = 0; i < no_room.remedies.size(); ++i)
    remedy += (i + 1 == no_room.remedies.size() ? " or " : ", ") + no_room.remedies[i];
  return expectation(
      fmt::format("memory of device {}", no_room.device),
      fmt::format("at most {} (run.memory_budget){}", byte_size(static_cast<double>(no_room.budget_bytes)),
                  no_room.when),
      fmt::format("a plan of {} ({})", byte_size(static_cast<double>(needed)), memory_text(no_room.items)), remedy);
}

}  // namespace collimate::base
