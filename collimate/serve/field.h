#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/serve/api.h"

// These functions read the values of a request's fields. Each throws ApiError 400 that names the field.
namespace collimate::serve {

// Returns the first 80 characters of a value as JSON, for a message.
template <class Json>
std::string shown(const Json& value) {
  return base::beginning_of(value.dump(-1, ' ', false, Json::error_handler_t::replace), 80);
}

template <class Json>
[[noreturn]] void wrong(const std::string& name, const std::string& expected, const Json& got,
                        const std::string& remedy = "") {
  throw ApiError(400, base::expectation(name, expected, shown(got), remedy), name, "invalid_value");
}

inline bool flag(const nlohmann::json& value, const std::string& name) {
  if (!value.is_boolean()) wrong(name, "true or false", value);
  return value.get<bool>();
}

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();  // no upper limit

inline int64_t integer(const nlohmann::json& value, const std::string& name, int64_t low, int64_t high) {
  const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() >> 63 != 0);
  if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high)
    wrong(name,
          high == kAny ? fmt::format("an integer of at least {}", low)
                       : fmt::format("an integer from {} to {}", low, high),
          value);
  return value.get<int64_t>();
}

}  // namespace collimate::serve
