#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The words and sizes in which errors, notes and reports tell of a device's memory.
namespace collimate::base {

// "1.4 GiB": three digits and a unit.
std::string byte_size(double bytes);

// Says what an item of a device's memory holds, as "policy: gradients" for "policy/gradient".
std::string memory_words(std::string_view item);

// Names of items with their bytes.
using MemoryItems = std::vector<std::pair<std::string, int64_t>>;

// "policy: gradients 20 MiB, keys and values (the KV cache) 8 MiB, 3 smaller items 1.2 MiB": the largest ones first.
std::string memory_text(MemoryItems items);

// Says that a device has no room for what it is to hold at a time: "" or " while policy.generate runs".
struct NoRoom {
  int device = 0;
  int64_t budget_bytes = 0;  // by run.memory_budget
  MemoryItems items;
  std::string when;
  std::vector<std::string> remedies;  // beside a larger budget
};
std::string no_room_message(const NoRoom& no_room);

}  // namespace collimate::base
