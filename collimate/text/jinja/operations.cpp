// Operators, items and slices, as Python has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/characters.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/filter_kinds.h"
#include "collimate/text/jinja/formats.h"

namespace collimate::text::jinja {
namespace {

[[noreturn]] void refuse_pair(const std::string& sign, const Value& a, const Value& b) {
  refuse(fmt::format("operands of {}", sign), fmt::format("{} and {}", a.kind(), b.kind()));
}

Value repeated(const Value& of, int64_t times) {
  const size_t size = of.is_text() ? of.text().size() : of.list().size();
  const size_t count = size == 0 ? 0 : static_cast<size_t>(std::max<int64_t>(0, times));
  expect_room(count, size * (of.is_text() ? 1 : sizeof(Value)));
  if (of.is_text()) {
    std::string out;
    out.reserve(count * size);
    for (size_t i = 0; i < count; ++i) out += of.text();
    return out;
  }
  List out;
  out.reserve(count * size);
  for (size_t i = 0; i < count; ++i) out.insert(out.end(), of.list().begin(), of.list().end());
  return out;
}

Value joined(const std::string& a, const std::string& b) {
  expect_room(a.size() + b.size(), 1);
  return a + b;
}
Value joined(const List& a, const List& b) {
  expect_room(a.size() + b.size(), sizeof(Value));
  List out;
  out.reserve(a.size() + b.size());
  out.insert(out.end(), a.begin(), a.end());
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

// Returns the value as a tuple or as markup where `of` is such.
Value like(const Value& of, const Value& value) {
  if (of.is_tuple()) return Value::tuple(value.list());
  return of.is_markup() ? Value::markup(value.text()) : value;
}

std::string as_markup(const Value& text) { return text.is_markup() ? text.text() : escaped(text.text()); }
// Returns values as markup takes them into its places: escaped.
Value escaped_all(const Value& values) {
  if (values.is_text()) return as_markup(values);
  if (!values.is_tuple() && !values.is_dict()) return values;
  if (values.is_dict()) {
    Dict members;
    for (const auto& [key, member] : values.dict()) members.emplace_back(key, escaped_all(member));
    return members;
  }
  List items;
  for (const Value& item : values.list()) items.push_back(escaped_all(item));
  return Value::tuple(std::move(items));
}

Value whole_result(const std::string& sign, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  if (sign == "+") {
    overflow = __builtin_add_overflow(a, b, &out);
  } else if (sign == "-") {
    overflow = __builtin_sub_overflow(a, b, &out);
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(a, b, &out);
  } else {
    if (b == 0) refuse("a divisor", "0");
    if (b == -1) return whole_result("*", sign == "//" ? a : 0, -1);
    const int64_t rest = a % b, shift = rest != 0 && (rest < 0) != (b < 0) ? 1 : 0;  // Python rounds down
    out = sign == "//" ? a / b - shift : rest + shift * b;
  }
  if (overflow) refuse("numbers of 64 bits", "a larger one");
  return out;
}

Value real_result(const std::string& sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**") return std::pow(a, b);
  if (b == 0) refuse("a divisor", "0");
  if (sign == "/") return a / b;
  double rest = std::fmod(a, b);  // Python rounds down
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (sign == "%") return rest == 0 ? std::copysign(0.0, b) : rest;
  const double whole = (a - rest) / b;
  return whole == 0 ? std::copysign(0.0, a / b) : std::floor(whole + 0.5);
}

Value number_result(const std::string& sign, const Value& a, const Value& b) {
  const bool whole = !a.is<double>() && !b.is<double>();
  if (!whole || sign == "/") return real_result(sign, a.real(), b.real());
  if (sign != "**") return whole_result(sign, a.whole(), b.whole());
  const double power = std::pow(a.real(), b.real());
  if (b.whole() < 0) return power;
  if (std::abs(power) < 0x1p53) return static_cast<int64_t>(power);
  Value whole_power = 1;
  for (int64_t i = 0; i < b.whole(); ++i) whole_power = whole_result("*", whole_power.whole(), a.whole());
  return whole_power;
}

int64_t place_in(int64_t index, size_t size) { return index < 0 ? index + static_cast<int64_t>(size) : index; }

// Returns the places of a slice, as Python's slice.indices() gives them.
std::vector<size_t> places(size_t size, const Value& first, const Value& last, const Value& step) {
  const auto given = [](const Value& value) { return !value.is<Undefined>() && !value.is<None>(); };
  const int64_t count = static_cast<int64_t>(size);
  const int64_t by = given(step) ? std::clamp(step.whole(), -count - 1, count + 1) : 1;
  if (by == 0) refuse("a step", "0");
  const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? count : count - 1;
  const auto bound = [&](const Value& value, int64_t fallback) {
    return given(value) ? std::clamp(place_in(value.whole(), size), low, high) : fallback;
  };
  const int64_t begin = bound(first, by > 0 ? low : high), end = bound(last, by > 0 ? high : low);
  std::vector<size_t> all;
  for (int64_t at = begin; by > 0 ? at < end : at > end; at += by) all.push_back(static_cast<size_t>(at));
  return all;
}

// Names what is missing, for errors. At most 100 characters of the name are kept, as values are copied.
Value missing(const std::string& name) { return Undefined{base::beginning_of(name, 100)}; }

// Returns whether `what` stands at `at`; charges the bytes that are compared.
bool stands_at(const std::string& what, const std::string& in, size_t at) {
  const auto end = std::mismatch(what.begin(), what.end(), in.begin() + static_cast<int64_t>(at)).first;
  charge(static_cast<size_t>(end - what.begin()) + 1);
  return end == what.end();
}

Value loop_attribute(const Loop& loop, const std::string& name) {
  const auto length = static_cast<int64_t>(loop.items->size());
  const auto item = [&](int64_t at) {
    return at >= 0 && at < length ? base::at(*loop.items, at) : Value(Undefined{"an item beside"});
  };
  if (name == "index") return loop.index + 1;
  if (name == "index0") return loop.index;
  if (name == "revindex") return length - loop.index;
  if (name == "revindex0") return length - loop.index - 1;
  if (name == "first") return loop.index == 0;
  if (name == "last") return loop.index + 1 == length;
  if (name == "length") return length;
  if (name == "previtem") return item(loop.index - 1);
  if (name == "nextitem") return item(loop.index + 1);
  if (name == "depth" || name == "depth0") return loop.depth + (name == "depth" ? 1 : 0);
  refuse("index, first, last, length, previtem, nextitem or the like of loop", name);
}

}  // namespace

Value calculate(const std::string& sign, const Value& a, const Value& b) {
  charge(kItemCost);
  if (sign == "+" && a.is_text() && b.is_text() && (a.is_markup() || b.is_markup()))
    return Value::markup(joined(as_markup(a), as_markup(b)).text());
  if ((sign == "~" || sign == "+") && a.is_text() && b.is_text()) return joined(a.text(), b.text());
  if (sign == "~") return joined(to_text(a), to_text(b));
  if (sign == "%" && a.is_text())
    return a.is_markup() ? Value::markup(percent_format(a.text(), escaped_all(b))) : Value(percent_format(a.text(), b));
  if (a.is_number() && b.is_number()) return number_result(sign, a, b);
  if (sign == "+" && a.is_list() && b.is_list() && a.is_tuple() == b.is_tuple())
    return like(a, joined(a.list(), b.list()));
  if (sign == "*" && b.is<int64_t>() && (a.is_text() || a.is_list())) return like(a, repeated(a, b.whole()));
  if (sign == "*" && a.is<int64_t>() && (b.is_text() || b.is_list())) return like(b, repeated(b, a.whole()));
  refuse_pair(sign, a, b);
}

Value negative(const Value& of) {
  if (of.is<double>()) return -of.real();  // 0.0 too has a sign
  return calculate("-", 0, of);
}

bool contains(const Value& in, const Value& what) {
  if (in.is_text() && what.is_text()) return place_of(what.text(), in.text(), 0) != std::string::npos;
  if (in.is<Undefined>()) return false;
  if (in.is_dict() && is_key(what)) return find(in.dict(), what) != nullptr;
  if (in.is_list())
    return std::any_of(in.list().begin(), in.list().end(), [&](const Value& item) { return equal(item, what); });
  if (in.is<std::shared_ptr<Namespace>>())
    return what.is_text() && find(in.as<std::shared_ptr<Namespace>>()->members, what.text()) != nullptr;
  refuse_pair("in", what, in);
}

size_t place_of(const std::string& what, const std::string& in, size_t from) {
  if (what.empty()) return from;
  for (size_t at = from; at < in.size(); ++at) {
    const size_t begin = std::exchange(at, std::min(in.find(what[0], at), in.size()));
    charge(at - begin);
    if (what.size() > in.size() - at) break;
    if (stands_at(what, in, at)) return at;
  }
  return std::string::npos;
}

size_t last_place_of(const std::string& what, const std::string& in, size_t from) {
  if (what.size() > in.size()) return std::string::npos;
  for (size_t ends = std::min(from, in.size() - what.size()) + 1; ends > 0; --ends)
    if (stands_at(what, in, ends - 1)) return ends - 1;
  return std::string::npos;
}

std::shared_ptr<const List> items_of(const Value& value) {
  if (value.is_list()) {
    charge(value.list().size());
    return value.shared_list();
  }
  List items;
  if (value.is_dict()) {
    for (const auto& [key, member] : value.dict()) items.push_back(key);
  } else if (value.is_text()) {
    const auto all = characters(value.text());
    expect_room(all.size(), sizeof(Value));
    items.reserve(all.size());
    for (const std::string_view each : all) items.emplace_back(each);
  } else if (!value.is<Undefined>()) {
    refuse("a list, a dictionary or a text to go through", value.kind());
  }
  return Value(std::move(items)).shared_list();
}

bool is_dict_method(const std::string& name) {
  static constexpr std::array kNames = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                        "pop",   "popitem", "setdefault", "update", "values"};
  return std::ranges::find(kNames, name) != kNames.end();
}

Value attribute_of(const Value& of, const std::string& name) {
  if (of.is_group() && (name == "grouper" || name == "list")) return of.list()[name == "list" ? 1 : 0];
  if (of.is<std::shared_ptr<Turns>>() && name == "current") {
    const Turns& turns = *of.as<std::shared_ptr<Turns>>();
    return turns.items[turns.at];
  }
  if (of.is<Loop>()) return loop_attribute(of.as<Loop>(), name);
  if (of.is<Undefined>())
    refuse(fmt::format("a value that has '{}'", name),
           fmt::format("'{}', which is undefined", of.as<Undefined>().name));
  if (of.is_dict() && is_dict_method(name)) return fmt::format("<built-in method {} of dict object>", name);
  const Value* member = of.is_dict()                          ? find(of.dict(), name)
                        : of.is<std::shared_ptr<Namespace>>() ? find(of.as<std::shared_ptr<Namespace>>()->members, name)
                                                              : nullptr;
  return member == nullptr ? missing(name) : *member;
}

Value item_of(const Value& of, const Value& key) {
  if (const Value* member = key.is_text() && of.is_dict() ? find(of.dict(), key) : nullptr) return *member;
  if (key.is_text()) return attribute_of(of, key.text());
  if (of.is<Undefined>()) return attribute_of(of, to_text(key));
  if (of.is_dict()) {
    const Value* member = find(of.dict(), key);
    return member == nullptr ? missing(to_text(key)) : *member;
  }
  if (!(key.is<int64_t>() || key.is<bool>()) || !(of.is_list() || of.is_text())) return missing(to_text(key));
  const auto item = [&](const auto& all) -> Value {
    const int64_t at = place_in(key.whole(), all.size());
    if (at < 0 || at >= static_cast<int64_t>(all.size())) return missing(to_text(key));
    return Value(base::at(all, at));
  };
  return of.is_list() ? item(of.list()) : item(characters(of.text()));
}

Value slice_of(const Value& of, const Value& first, const Value& last, const Value& step) {
  if (of.is_text()) {
    const std::vector<std::string_view> all = characters(of.text());
    std::string out;
    for (const size_t at : places(all.size(), first, last, step)) out += all[at];
    return out;
  }
  if (!of.is_list()) refuse("a list or a text to cut", of.kind());
  List out;
  for (const size_t at : places(of.list().size(), first, last, step)) out.push_back(of.list()[at]);
  return like(of, std::move(out));
}

}  // namespace collimate::text::jinja
