#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/fields.h"
#include "collimate/base/words.h"

namespace collimate::graph {

// Returns "a, b, c", for messages.
std::string join(const std::vector<std::string>& words);

// Reads strictly what a person may have written: a struct that names its fields (base/fields.h), any of which may be
// absent, a table or a list of what can be read, or a plain value. Throws InputError naming the place under `where` for
// a wrong type, an integer with a fraction or out of range, an unknown key and an unknown word.
template <class T>
T read_json(const nlohmann::json& value, const std::string& where);

// A JsonFields reads one JSON object key by key, equally strictly: finish() refuses keys that were not read.
class JsonFields {
 public:
  // The object must outlive this.
  JsonFields(const nlohmann::json& object, std::string where);
  JsonFields(nlohmann::json&&, std::string) = delete;

  // Returns the value of `key`, or `fallback` when absent.
  template <class T>
  T get(const char* key, T fallback) {
    const nlohmann::json* found = find(key);
    return found == nullptr ? fallback : read_json<T>(*found, where_ + "." + key);
  }
  template <class T>
  T require(const char* key) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) missing(key);
    return read_json<T>(*found, where_ + "." + key);
  }
  // Returns the value of `key` or null, for nested objects.
  const nlohmann::json* find(const char* key);
  // Throws InputError when the object has keys that were not asked for. It must be called last.
  void finish() const;
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void missing(const char* key) const;

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

[[noreturn]] void wrong_type(const nlohmann::json& value, const std::string& where,
                             const std::string& expected = "another type of value");
// Returns a whole number, which some writers give as 2.0. Throws InputError for anything else and for one that is not
// from `least` to `most`.
int64_t read_integer(const nlohmann::json& value, const std::string& where, int64_t least, int64_t most);

template <class T>
struct TableOf : std::false_type {};
template <class T>
struct TableOf<std::map<std::string, T>> : std::true_type {};
template <class T>
struct ListOf : std::false_type {};
template <class T>
struct ListOf<std::vector<T>> : std::true_type {};

template <class T>
T read_json(const nlohmann::json& value, const std::string& where) {
  T made{};
  if constexpr (base::HasFields<T>) {
    JsonFields fields(value, where);
    T::fields(made, [&](const char* key, auto& field, const auto&...) { field = fields.get(key, field); });
    fields.finish();
  } else if constexpr (base::HasWords<T>) {
    made = words_of(made).parse(where, value.is_string() ? value.get<std::string>() : value.dump());
  } else if constexpr (TableOf<T>::value) {
    if (!value.is_null() && !value.is_object()) wrong_type(value, where);
    for (const auto& [key, entry] : value.items())
      made[key] = read_json<typename T::mapped_type>(entry, where + "." + key);
  } else if constexpr (ListOf<T>::value) {
    if (!value.is_array()) wrong_type(value, where, "a list");
    for (const auto& entry : value)
      made.push_back(read_json<typename T::value_type>(entry, fmt::format("{}[{}]", where, made.size())));
  } else if constexpr (std::signed_integral<T>) {
    made = static_cast<T>(read_integer(value, where, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) wrong_type(value, where, "a number");
    value.get_to(made);
  } else {
    try {
      value.get_to(made);
    } catch (const nlohmann::json::exception&) {
      wrong_type(value, where);
    }
  }
  return made;
}

}  // namespace collimate::graph
