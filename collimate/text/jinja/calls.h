#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collimate/text/jinja/value.h"

namespace collimate::text::jinja {

// Arguments are what filters, tests, methods and functions get; the first of a filter or method is the value it is of.
struct Arguments {
  List positional;
  Named named;

  // The argument at a place, or of that name; `fallback` where neither is given.
  Value get(size_t place, const std::string& name, Value fallback = {}) const;
  const Value& of() const { return positional.front(); }
};

// Jinja's filters and tests, Python's methods of texts and dictionaries, and the functions that templates of chats use.
// InputError for names that are not among them, and for values that they do not take.
Value apply_filter(const std::string& name, const Arguments& arguments);
bool apply_test(const std::string& name, const Arguments& arguments);
Value call_method(const std::string& name, const Arguments& arguments);
Value call_function(const std::string& name, const Arguments& arguments);
bool is_function(const std::string& name);

// The items that a for loop walks: of a list, the keys of a dictionary, the characters of a text. InputError for
// others.
std::shared_ptr<const List> items_of(const Value& value);
Value attribute_of(const Value& of, const std::string& name);
Value item_of(const Value& of, const Value& key);
// `a <sign> b` of + - * / // % ** ~.
Value calculate(const std::string& sign, const Value& a, const Value& b);
Value negative(const Value& of);
bool contains(const Value& in, const Value& what);
// Where `what` stands first from `from` on, or last at or before it; npos where it does not.
size_t place_of(const std::string& what, const std::string& in, size_t from);
size_t last_place_of(const std::string& what, const std::string& in, size_t from);
// of[first:last:step], each Undefined where it is not given.
Value slice_of(const Value& of, const Value& first, const Value& last, const Value& step);

}  // namespace collimate::text::jinja
