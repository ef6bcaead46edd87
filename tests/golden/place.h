#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace collimate::golden {

using nlohmann::json;

// A value of a file and where it stands in it ("steps[0].batch.prompt_ids"). What is not as asked for is an InputError
// that names the place. A null is as good as a missing one. Must not outlive the value.
class Place {
 public:
  explicit Place(const json& value, std::string path = "the file") : value_(&value), path_(std::move(path)) {}

  const json& value() const { return *value_; }
  size_t size() const { return value_->size(); }
  // The entry `key` of an object.
  Place at(const std::string& key) const;
  std::optional<Place> find(const std::string& key) const;

  // An object, and its entries.
  std::vector<Place> entries() const;
  // An array of `count` elements (0: one or more), and the elements.
  std::vector<Place> items(size_t count = 0) const;
  // Numbers or booleans: one, [count], or [R, T] as `like` is.
  void number() const;
  void numbers(size_t count = 0) const;
  void numbers_like(const Place& like) const;
  // An integer from 0 to below `count`.
  void index(int64_t count) const;
  // [R, T] of token ids below `vocabulary`, R at least 1.
  void ids(int64_t vocabulary) const;

  [[noreturn]] void fail(const std::string& expected, const std::string& got) const;

 private:
  const json* value_;
  std::string path_;
};

// The entry of an object where it is there and no null; `fallback` else.
double number_or(const json& object, const std::string& key, double fallback);
// The entry of an object as an object; {} where it is missing or null.
const json& object_or_empty(const json& object, const std::string& key);

// Text of Python's json: with the tokens NaN, Infinity and -Infinity too. InputError that names `where` for other text.
json parse_python(const std::string& text, const std::string& where);

}  // namespace collimate::golden
