#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::recipe {

// Runs `step` and returns true. Where it throws, adds the message to `problems` and returns false; wrong input is added
// once though several steps find it.
template <class Step>
bool attempt(std::vector<std::string>& problems, const Step& step) {
  try {
    step();
    return true;
  } catch (const base::Error& error) {
    if (std::ranges::find(problems, error.what()) == problems.end()) problems.emplace_back(error.what());
  } catch (const std::exception& error) {
    problems.push_back(fmt::format("[check] {}", error.what()));
  }
  return false;
}

}  // namespace collimate::recipe
