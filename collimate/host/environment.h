#pragma once

#include <cstdlib>
#include <string>

namespace collimate::host {

// A variable of the environment; "" where it has none of that name.
inline std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace collimate::host
