#pragma once

#include <algorithm>
#include <iterator>

namespace collimate::base {

// Says whether a list has the value.
bool contains(const auto& list, const auto& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

}  // namespace collimate::base
