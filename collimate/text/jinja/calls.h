#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collimate/text/jinja/value.h"

namespace collimate::text::jinja {

// Holds what filters, tests, methods and functions get. The first argument of a filter, test or method is the value
// that it is applied to.
struct Arguments {
  List positional;
  Named named;

  // Returns the argument at a place, or of that name; `fallback` where neither is given.
  Value get(size_t place, const std::string& name, Value fallback = {}) const;
  const Value& of() const { return positional.front(); }
};

// These apply Jinja's filters and tests, call Python's methods of texts, lists and dictionaries, and call the functions
// that chat templates use. The first three throw InputError for names that are not among them; call_function takes a
// name that is_function knows. All throw InputError for values that they do not take.
Value apply_filter(const std::string& name, const Arguments& arguments);
bool apply_test(const std::string& name, const Arguments& arguments);
Value call_method(const std::string& name, const Arguments& arguments);
Value call_function(const std::string& name, const Arguments& arguments);
bool is_function(const std::string& name);

// Returns the items that a for loop walks: of a list, the keys of a dictionary, the characters of a text, none of an
// undefined value. Throws InputError for others.
std::shared_ptr<const List> items_of(const Value& value);
Value attribute_of(const Value& of, const std::string& name);
// Returns whether a dictionary of Python has a method of that name, which `.name` means ahead of a member.
bool is_dict_method(const std::string& name);
Value item_of(const Value& of, const Value& key);
// Returns `a <sign> b` for a sign of + - * / // % ** ~.
Value calculate(const std::string& sign, const Value& a, const Value& b);
Value negative(const Value& of);
bool contains(const Value& in, const Value& what);
// The first returns where `what` stands first from `from` on, the second where it stands last at or before `from`; npos
// where it does not.
size_t place_of(const std::string& what, const std::string& in, size_t from);
size_t last_place_of(const std::string& what, const std::string& in, size_t from);
// Returns of[first:last:step], each Undefined where it is not given.
Value slice_of(const Value& of, const Value& first, const Value& last, const Value& step);

}  // namespace collimate::text::jinja
