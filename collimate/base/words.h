#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::base {

// A Words holds the words of an enumeration in the order of its values. Beside the enumeration stands
//   constexpr auto words_of(Residency) { return base::Words<Residency, 2>{"residency", {"device", "swap"}}; }
// and JSON then has the words instead of numbers.
template <class Enum, size_t N>
struct Words {
  const char* what;
  std::string_view words[N];

  std::string name(Enum value) const { return std::string(at(words, value)); }
  // Returns the value of a word. Throws InputError that lists the words when `word` is none of them.
  Enum parse(const std::string& where, std::string_view word) const {
    for (size_t i = 0; i < N; ++i)
      if (words[i] == word) return static_cast<Enum>(i);
    throw InputError(
        expectation(where, fmt::format("{} to be one of {}", what, fmt::join(words, ", ")), fmt::format("'{}'", word)));
  }
};

template <class Enum>
concept HasWords = requires(Enum value) {
  words_of(value).name(value);
};

}  // namespace collimate::base

template <collimate::base::HasWords Enum>
struct nlohmann::adl_serializer<Enum> {
  template <class Json>
  static void to_json(Json& out, const Enum& value) {
    out = words_of(value).name(value);
  }
  template <class Json>
  static void from_json(const Json& in, Enum& value) {
    const auto words = words_of(Enum{});
    value = words.parse(words.what, in.template get<std::string>());
  }
};
