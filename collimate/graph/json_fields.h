#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::graph {

// "a, b, c" for messages.
std::string join(const std::vector<std::string>& words);

// Strict reading of one JSON object: a wrong type and a key that nobody asked for are InputErrors naming `where` and
// the key.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string where);

  // The value of `key`, or `fallback` when absent.
  template <class T>
  T get(const char* key, T fallback) {
    const nlohmann::json* found = find(key);
    return found == nullptr ? fallback : convert<T>(key, *found);
  }
  template <class T>
  T require(const char* key) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) missing(key);
    return convert<T>(key, *found);
  }
  // The value of `key` or null, for nested objects.
  const nlohmann::json* find(const char* key);
  // To be called last: throws when the object has other keys than those asked for.
  void finish() const;
  const std::string& where() const { return where_; }

 private:
  template <class T>
  T convert(const char* key, const nlohmann::json& value) {
    try {
      return value.get<T>();
    } catch (const nlohmann::json::exception&) {
      wrong_type(key, value);
    }
  }
  [[noreturn]] void missing(const char* key) const;
  [[noreturn]] void wrong_type(const char* key, const nlohmann::json& value) const;

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

// Words of an enumeration, in the order of its values.
template <class Enum, size_t N>
struct Words {
  const char* what;
  std::string_view words[N];

  std::string name(Enum value) const { return std::string(base::at(words, value)); }
  Enum parse(const std::string& where, std::string_view word) const {
    std::vector<std::string> known;
    for (size_t i = 0; i < N; ++i) {
      if (words[i] == word) return static_cast<Enum>(i);
      known.emplace_back(words[i]);
    }
    throw base::InputError(
        base::expectation(where, std::string(what) + " to be one of " + join(known), "'" + std::string(word) + "'"));
  }
};

}  // namespace collimate::graph
