#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// This file has the words and sizes with which errors, notes and reports describe a device's memory.
namespace collimate::base {

// Returns a size such as "1.4 GiB", with three digits and a unit.
std::string byte_size(double bytes);

// Returns words for an item of a device's memory, such as "policy: gradients" for "policy/gradient".
std::string memory_words(std::string_view item);

// MemoryItems are names of items with their bytes.
using MemoryItems = std::vector<std::pair<std::string, int64_t>>;

// Returns "policy: gradients 20 MiB, keys and values (the KV cache) 8 MiB, 3 smaller items 1.2 MiB": the largest items
// come first.
std::string memory_text(MemoryItems items);

// A NoRoom says that a device has too little memory for all that it is to hold at one time. `when` is "" or " while
// policy.generate runs".
struct NoRoom {
  int device = 0;
  int64_t budget_bytes = 0;  // by run.memory_budget
  MemoryItems items;
  std::string when;
  std::vector<std::string> remedies;  // in addition to a larger budget
};
std::string no_room_message(const NoRoom& no_room);

}  // namespace collimate::base
