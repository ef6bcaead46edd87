// Operators, items and slices, as Python has them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/text/jinja/calls.h"

namespace collimate::text::jinja {
namespace {

constexpr size_t kMostItems = size_t{1} << 20;

[[noreturn]] void refuse_pair(const std::string& sign, const Value& a, const Value& b) {
  refuse(fmt::format("operands of {}", sign), fmt::format("{} and {}", a.kind(), b.kind()));
}

Value repeated(const Value& of, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(0, times));
  if (of.is_text()) {
    if (!of.text().empty() && count > kMostText / of.text().size()) refuse("a text of at most 64 MiB", "a longer one");
    std::string out;
    for (size_t i = 0; i < count; ++i) out += of.text();
    return out;
  }
  if (!of.list().empty() && count > kMostItems / of.list().size()) refuse("a list of at most a million items", "more");
  List out;
  for (size_t i = 0; i < count; ++i) out.insert(out.end(), of.list().begin(), of.list().end());
  return out;
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
  const double down = std::floor(a / b);
  return sign == "//" ? down : a - down * b;
}

Value number_result(const std::string& sign, const Value& a, const Value& b) {
  const bool whole = !a.is<double>() && !b.is<double>();
  if (!whole || sign == "/") return real_result(sign, a.real(), b.real());
  if (sign != "**") return whole_result(sign, a.whole(), b.whole());
  const double power = std::pow(a.real(), b.real());
  if (b.whole() < 0 || std::abs(power) > 9e15) return power;
  return static_cast<int64_t>(power);
}

int64_t place_in(int64_t index, size_t size) { return index < 0 ? index + static_cast<int64_t>(size) : index; }

// Places of a slice, as Python's slice.indices().
std::vector<size_t> places(size_t size, const Value& first, const Value& last, const Value& step) {
  const auto given = [](const Value& value) { return !value.is<Undefined>() && !value.is<None>(); };
  const int64_t by = given(step) ? step.whole() : 1, count = static_cast<int64_t>(size);
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

Value loop_attribute(const Loop& loop, const std::string& name) {
  const auto length = static_cast<int64_t>(loop.items->size());
  const auto item = [&](int64_t at) {
    return at >= 0 && at < length ? (*loop.items)[static_cast<size_t>(at)] : Value(Undefined{"an item beside"});
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
  refuse("index, first, last, length, previtem, nextitem or the like of loop", name);
}

}  // namespace

Value calculate(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "~") return to_text(a) + to_text(b);
  if (a.is_number() && b.is_number()) return number_result(sign, a, b);
  if (sign == "+" && a.is_text() && b.is_text()) return a.text() + b.text();
  if (sign == "+" && a.is_list() && b.is_list()) {
    List joined = a.list();
    joined.insert(joined.end(), b.list().begin(), b.list().end());
    if (joined.size() > kMostItems) refuse("a list of at most a million items", "more");
    return joined;
  }
  if (sign == "*" && b.is<int64_t>() && (a.is_text() || a.is_list())) return repeated(a, b.whole());
  if (sign == "*" && a.is<int64_t>() && (b.is_text() || b.is_list())) return repeated(b, a.whole());
  refuse_pair(sign, a, b);
}

bool contains(const Value& in, const Value& what) {
  if (in.is_text() && what.is_text()) return in.text().find(what.text()) != std::string::npos;
  if (in.is_dict()) return what.is_text() && find(in.dict(), what.text()) != nullptr;
  if (in.is_list())
    return std::any_of(in.list().begin(), in.list().end(), [&](const Value& item) { return equal(item, what); });
  if (in.is<std::shared_ptr<Namespace>>())
    return what.is_text() && find(in.as<std::shared_ptr<Namespace>>()->members, what.text()) != nullptr;
  refuse_pair("in", what, in);
}

List items_of(const Value& value) {
  if (value.is_list()) return value.list();
  List items;
  if (value.is_dict()) {
    for (const auto& [key, member] : value.dict()) items.emplace_back(key);
  } else if (value.is_text()) {
    for (std::string& each : characters(value.text())) items.emplace_back(std::move(each));
  } else if (!value.is<Undefined>()) {
    refuse("a list, a dictionary or a text to go through", value.kind());
  }
  return items;
}

Value attribute_of(const Value& of, const std::string& name) {
  if (of.is<Loop>()) return loop_attribute(of.as<Loop>(), name);
  if (of.is<Undefined>())
    refuse(fmt::format("a value that has '{}'", name),
           fmt::format("'{}', which is undefined", of.as<Undefined>().name));
  const Dict* members = of.is_dict()                          ? &of.dict()
                        : of.is<std::shared_ptr<Namespace>>() ? &of.as<std::shared_ptr<Namespace>>()->members
                                                              : nullptr;
  const Value* member = members == nullptr ? nullptr : find(*members, name);
  return member == nullptr ? Value(Undefined{name}) : *member;
}

Value item_of(const Value& of, const Value& key) {
  if (key.is_text()) return attribute_of(of, key.text());
  if (of.is<Undefined>()) return attribute_of(of, to_text(key));
  if (!key.is<int64_t>() || !(of.is_list() || of.is_text())) return Undefined{to_text(key)};
  if (of.is_list()) {
    const int64_t at = place_in(key.whole(), of.list().size());
    return at >= 0 && at < static_cast<int64_t>(of.list().size()) ? of.list()[static_cast<size_t>(at)]
                                                                  : Value(Undefined{to_text(key)});
  }
  const std::vector<std::string> all = characters(of.text());
  const int64_t at = place_in(key.whole(), all.size());
  return at >= 0 && at < static_cast<int64_t>(all.size()) ? Value(all[static_cast<size_t>(at)])
                                                          : Value(Undefined{to_text(key)});
}

Value slice_of(const Value& of, const Value& first, const Value& last, const Value& step) {
  if (of.is_text()) {
    const std::vector<std::string> all = characters(of.text());
    std::string out;
    for (const size_t at : places(all.size(), first, last, step)) out += all[at];
    return out;
  }
  if (!of.is_list()) refuse("a list or a text to cut", of.kind());
  List out;
  for (const size_t at : places(of.list().size(), first, last, step)) out.push_back(of.list()[at]);
  return out;
}

}  // namespace collimate::text::jinja
