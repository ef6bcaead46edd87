// Filters and tests, as Jinja2 has them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "collimate/base/characters.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/filter_kinds.h"
#include "collimate/text/jinja/letters.h"

namespace collimate::text::jinja {
namespace {

using Test = bool (*)(const Arguments&);

Value length(const Arguments& a) {
  if (a.of().is_text()) return base::characters_in(text_of(a));
  return static_cast<int64_t>(items_of(a.of())->size());
}

Value tojson(const Arguments& a) {
  JsonFormat format{.ascii = truth(a.get(1, "ensure_ascii", false)), .sort_keys = truth(a.get(4, "sort_keys", false))};
  if (const Value indent = a.get(2, "indent", None{}); !indent.is<None>()) {
    format.indent = indent.is_text() ? indent.text() : calculate("*", " ", indent.whole()).text();
    format.item = ',';
  }
  if (const Value separators = a.get(3, "separators"); separators.is_list() && separators.list().size() == 2) {
    format.item = to_text(separators.list()[0]);
    format.key = to_text(separators.list()[1]);
  }
  return to_json(a.of(), format);
}

Value fallback(const Arguments& a) {
  const bool also_false = truth(a.get(2, "boolean", false));
  const bool missing = a.of().is<Undefined>() || (also_false && !truth(a.of()));
  return missing ? a.get(1, "default_value", "") : a.of();
}

Value to_real(const Arguments& a) {
  if (a.of().is_number()) return a.of().real();
  double number = 0;
  const std::string text = to_text(call_method("strip", {{text_of(a)}, {}}));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? Value(number) : a.get(1, "default", 0.0);
}

Value whole_of(double number) {
  if (!(std::abs(number) < 0x1p63)) refuse("a number of 64 bits", to_text(number));
  return static_cast<int64_t>(number);
}

// Reads a number as Python's int() of a text, which may have a sign and, in bases of 2, 8 and 16, a prefix.
bool read_whole(std::string text, int base, int64_t& number) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.erase(0, 1);
  const std::map<int, const char*> prefixes = {{2, "0b"}, {8, "0o"}, {16, "0x"}};
  if (const auto prefix = prefixes.find(base); prefix != prefixes.end() && lower(text).starts_with(prefix->second))
    text.erase(0, 2);
  if (base < 2 || base > 36 || text.starts_with('-')) return false;
  if (negative) text.insert(text.begin(), '-');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

// Returns Python's int() of a value, or of its float() where it is no whole number.
Value to_whole(const Arguments& a) {
  const Value& of = a.of();
  if (of.is_number() && !of.is<double>()) return of.whole();
  if (of.is_text()) {
    int64_t exact = 0;
    const std::string text = to_text(call_method("strip", {{of}, {}}));
    if (read_whole(text, static_cast<int>(a.get(2, "base", 10).whole()), exact)) return exact;
  }
  const Value number = to_real({{of, None{}}, {}});
  const bool none = number.is<None>() || std::isnan(number.real()) || (of.is_text() && std::isinf(number.real()));
  return none ? a.get(1, "default", 0) : whole_of(number.real());
}

Value rounded(const Arguments& a) {
  const Value& of = a.of();
  const int64_t digits = std::clamp<int64_t>(a.get(1, "precision", 0).whole(), -15, 300);
  const std::string method = to_text(a.get(2, "method", "common"));
  if (method != "common" && method != "ceil" && method != "floor") refuse("common, ceil or floor", method);
  if (method == "common" && !of.is<double>() && digits >= 0) return of.whole();
  const double scale = std::pow(10.0, static_cast<double>(digits)), value = of.real() * scale;
  if (method != "common") return (method == "ceil" ? std::ceil(value) : std::floor(value)) / scale;
  if (digits >= 0 && std::isfinite(of.real()))
    return std::strtod(fmt::format("{:.{}f}", of.real(), digits).c_str(),
                       nullptr);  // exact, halves to even
  const double whole = std::nearbyint(value) / scale;
  return of.is<double>() ? Value(whole) : whole_of(whole);
}

Value absolute(const Arguments& a) {
  return a.of().is<double>() ? Value(std::abs(a.of().real())) : Value(std::abs(a.of().whole()));
}

const std::map<std::string, Filter>& other_filters() {
  static const std::map<std::string, Filter> kFilters = {{"abs", absolute},     {"count", length},  {"d", fallback},
                                                         {"default", fallback}, {"float", to_real}, {"int", to_whole},
                                                         {"length", length},    {"round", rounded}, {"tojson", tojson}};
  return kFilters;
}

const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> kFilters = [] {
    std::map<std::string, Filter> all = other_filters();
    all.insert(text_filters().begin(), text_filters().end());
    all.insert(list_filters().begin(), list_filters().end());
    return all;
  }();
  return kFilters;
}

bool has_items(const Arguments& a) {
  return a.of().is_list() || a.of().is_dict() || a.of().is_text() || a.of().is<Undefined>();
}

// Returns whether two values are one, for Python's `is`.
bool same(const Arguments& a) {
  const Value &of = a.of(), other = a.get(1, "other");
  const bool kinds = of.is<bool>() == other.is<bool>() && of.is<double>() == other.is<double>();
  return kinds && equal(of, other);
}

bool divides(const Value& number, const Value& of) { return equal(calculate("%", of, number), 0); }

bool is_test(const std::string& name);

const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> kTests = {
      {"boolean", [](const Arguments& a) { return a.of().is<bool>(); }},
      {"callable",
       [](const Arguments& a) { return a.of().is<Macro>() || a.of().is<Function>() || a.of().is<Undefined>(); }},
      {"defined", [](const Arguments& a) { return !a.of().is<Undefined>(); }},
      {"divisibleby", [](const Arguments& a) { return divides(a.get(1, "num"), a.of()); }},
      {"escaped", [](const Arguments& a) { return a.of().is_markup(); }},
      {"even", [](const Arguments& a) { return divides(2, a.of()); }},
      {"filter", [](const Arguments& a) { return a.of().is_text() && filters().contains(a.of().text()); }},
      {"false", [](const Arguments& a) { return a.of().is<bool>() && !truth(a.of()); }},
      {"float", [](const Arguments& a) { return a.of().is<double>(); }},
      {"in", [](const Arguments& a) { return contains(a.get(1, "seq"), a.of()); }},
      {"integer", [](const Arguments& a) { return a.of().is<int64_t>(); }},
      {"iterable", has_items},
      {"lower", [](const Arguments& a) { return has_case(text_of(a), false); }},
      {"mapping", [](const Arguments& a) { return a.of().is_dict(); }},
      {"none", [](const Arguments& a) { return a.of().is<None>(); }},
      {"number", [](const Arguments& a) { return a.of().is_number(); }},
      {"odd", [](const Arguments& a) { return equal(calculate("%", a.of(), 2), 1); }},
      {"sameas", same},
      {"sequence", has_items},
      {"string", [](const Arguments& a) { return a.of().is_text(); }},
      {"test", [](const Arguments& a) { return a.of().is_text() && is_test(a.of().text()); }},
      {"true", [](const Arguments& a) { return a.of().is<bool>() && truth(a.of()); }},
      {"undefined", [](const Arguments& a) { return a.of().is<Undefined>(); }},
      {"upper", [](const Arguments& a) { return has_case(text_of(a), true); }}};
  return kTests;
}

// Returns the sign that a test stands for, as a sign or as a word; null for others.
const char* comparison_of(const std::string& test) {
  static const std::map<std::string, const char*> kSigns = {
      {"eq", "=="},         {"equalto", "=="}, {"==", "=="},      {"ne", "!="}, {"!=", "!="},
      {"lt", "<"},          {"<", "<"},        {"lessthan", "<"}, {"le", "<="}, {"<=", "<="},
      {"greaterthan", ">"}, {"gt", ">"},       {">", ">"},        {"ge", ">="}, {">=", ">="}};
  const auto found = kSigns.find(test);
  return found == kSigns.end() ? nullptr : found->second;
}

bool is_test(const std::string& name) { return comparison_of(name) != nullptr || tests().contains(name); }

template <class Table>
[[noreturn]] void refuse_name(const char* what, const Table& table, const std::string& name) {
  std::string known;
  for (const auto& [each, function] : table) known.append(known.empty() ? "" : ", ").append(each);
  refuse(fmt::format("one of the {} {}", what, known), fmt::format("'{}'", base::beginning_of(name, 40)));
}

}  // namespace

Value Arguments::get(size_t place, const std::string& name, Value otherwise) const {
  if (place < positional.size()) return positional[place];
  const Value* given = find(named, name);
  return given == nullptr ? std::move(otherwise) : *given;
}

Value apply_filter(const std::string& name, const Arguments& arguments) {
  charge(kStepCost);
  const auto found = filters().find(name);
  if (found == filters().end()) refuse_name("filters", filters(), name);
  return found->second(arguments);
}

bool apply_test(const std::string& name, const Arguments& arguments) {
  charge(kStepCost);
  if (const char* sign = comparison_of(name); sign != nullptr)
    return compare(sign, arguments.of(), arguments.get(1, "other"));
  const auto found = tests().find(name);
  if (found == tests().end()) refuse_name("tests", tests(), name);
  return found->second(arguments);
}

}  // namespace collimate::text::jinja
