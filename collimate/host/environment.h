#pragma once

#include <cstdlib>
#include <string>

namespace collimate::host {

// Returns a variable of the environment, or "" where it is not set.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace collimate::host
