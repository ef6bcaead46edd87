#pragma once

#include <string>
#include <vector>

namespace collimate::base {

// Returns the names of a list's entries, in the order of the list.
template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.emplace_back(entry.name);
  return names;
}

}  // namespace collimate::base
