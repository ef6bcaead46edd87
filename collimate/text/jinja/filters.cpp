// Filters and tests, as Jinja2 has them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "collimate/base/characters.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/calls.h"
#include "collimate/text/jinja/spaces.h"

namespace collimate::text::jinja {
namespace {

using Filter = Value (*)(const Arguments&);
using Test = bool (*)(const Arguments&);

std::string text_of(const Arguments& a) { return to_text(a.of()); }

template <class Change>
std::string changed(std::string text, const Change& change) {
  for (char& c : text) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return text;
}
std::string lower(const std::string& text) {
  return changed(text, [](int c) { return c < 128 ? std::tolower(c) : c; });
}
std::string upper(const std::string& text) {
  return changed(text, [](int c) { return c < 128 ? std::toupper(c) : c; });
}

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

Value key_of(const Value& item, const Value& attribute) {
  return attribute.is_text() ? attribute_of(item, attribute.text()) : item;
}

Value join(const Arguments& a) {
  const std::string between = to_text(a.get(1, "d", ""));
  const Value attribute = a.get(2, "attribute");
  const auto items = items_of(a.of());
  Pieces out;
  for (size_t i = 0; i < items->size(); ++i) {
    if (i > 0) out << between;
    out << to_text(key_of((*items)[i], attribute));
  }
  return out.take();
}

Value indent(const Arguments& a) {
  const Value width = a.get(1, "width", 4);
  const std::string space = width.is_text()
                                ? width.text()
                                : std::string(static_cast<size_t>(std::clamp<int64_t>(width.whole(), 0, 1000)), ' ');
  const bool first = truth(a.get(2, "first", false)), blank = truth(a.get(3, "blank", false));
  const std::string text = text_of(a) + "\n";  // Jinja2 adds it, so that an empty last line counts
  Pieces out;
  if (first) out << space;
  const std::vector<std::string_view> lines = lines_of(text, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out << '\n';
    if (i > 0 && (blank || !lines[i].empty())) out << space;
    out << lines[i];
  }
  return out.take();
}

Value pairs_of(const Value& of) {
  if (of.is<Undefined>()) return List{};
  if (!of.is_dict()) refuse("a dictionary", of.kind());
  List pairs;
  for (const auto& [key, member] : of.dict()) pairs.emplace_back(List{key, member});
  return pairs;
}

Value folded(const Value& value, bool case_sensitive) {
  return value.is_text() && !case_sensitive ? Value(lower(value.text())) : value;
}

Value sorted(const Arguments& a) {
  const bool reversed = truth(a.get(1, "reverse", false)), exact = truth(a.get(2, "case_sensitive", false));
  const Value attribute = a.get(3, "attribute");
  List items = *items_of(a.of());
  const auto before = [&](const Value& x, const Value& y) {
    const Value left = folded(key_of(x, attribute), exact), right = folded(key_of(y, attribute), exact);
    return reversed ? less(right, left) : less(left, right);
  };
  std::stable_sort(items.begin(), items.end(), before);
  return items;
}

Value dictsort(const Arguments& a) {
  const bool exact = truth(a.get(1, "case_sensitive", false)), by_value = to_text(a.get(2, "by", "key")) == "value";
  List pairs = pairs_of(a.of()).list();
  std::stable_sort(pairs.begin(), pairs.end(), [&](const Value& x, const Value& y) {
    const size_t at = by_value ? 1 : 0;
    return less(folded(x.list()[at], exact), folded(y.list()[at], exact));
  });
  return pairs;
}

Value unique(const Arguments& a) {
  const auto items = items_of(a.of());
  List kept;
  for (const Value& item : *items)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const Value& other) { return equal(folded(item, false), folded(other, false)); }))
      kept.push_back(item);
  return kept;
}

Value reversed(const Arguments& a) {
  List items = *items_of(a.of());
  std::reverse(items.begin(), items.end());
  if (!a.of().is_text()) return items;
  std::string text;
  for (const Value& item : items) text += item.text();
  return text;
}

Value map(const Arguments& a) {
  List out;
  const Value attribute = a.get(99, "attribute");
  const auto items = items_of(a.of());
  for (const Value& item : *items) {
    if (attribute.is_text()) {
      const Value found = attribute_of(item, attribute.text());
      out.push_back(found.is<Undefined>() ? a.get(99, "default", found) : found);
    } else {
      if (a.positional.size() < 2) refuse("map by a filter's name or attribute=", "neither");
      Arguments inner{{item}, {}};
      inner.positional.insert(inner.positional.end(), a.positional.begin() + 2, a.positional.end());
      out.push_back(apply_filter(to_text(a.positional[1]), inner));
    }
  }
  return out;
}

// select, reject and those by attribute: the first argument behind the attribute names a test, true without one.
Value chosen(const Arguments& a, bool wanted, bool by_attribute) {
  const size_t test = by_attribute ? 2 : 1;
  if (by_attribute && a.positional.size() < 2) refuse("the name of an attribute", "none");
  const auto items = items_of(a.of());
  List kept;
  for (const Value& item : *items) {
    const Value value = by_attribute ? attribute_of(item, to_text(a.positional[1])) : item;
    bool passes = truth(value);
    if (a.positional.size() > test) {
      Arguments inner{{value}, {}};
      inner.positional.insert(inner.positional.end(), a.positional.begin() + static_cast<int64_t>(test) + 1,
                              a.positional.end());
      passes = apply_test(to_text(a.positional[test]), inner);
    }
    if (passes == wanted) kept.push_back(item);
  }
  return kept;
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

// Python's int(), or that of float() where it takes none.
Value to_whole(const Arguments& a) {
  const Value& of = a.of();
  if (of.is_number() && !of.is<double>()) return of.whole();
  if (of.is_text()) {
    int64_t exact = 0;
    const std::string text = to_text(call_method("strip", {{of}, {}}));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
    if (error == std::errc() && end == text.data() + text.size()) return exact;
  }
  const Value number = to_real({{of, None{}}, {}});
  const bool none = number.is<None>() || std::isnan(number.real()) || (of.is_text() && std::isinf(number.real()));
  return none ? a.get(1, "default", 0) : whole_of(number.real());
}

Value sum(const Arguments& a) {
  Value total = a.get(2, "start", 0);
  const Value attribute = a.get(1, "attribute");
  const auto items = items_of(a.of());
  for (const Value& item : *items) total = calculate("+", total, key_of(item, attribute));
  return total;
}

Value extreme(const Arguments& a, bool largest) {
  Value best = Undefined{"an item of an empty list"};
  const auto items = items_of(a.of());
  for (const Value& item : *items)
    if (best.is<Undefined>() || (largest ? less(best, item) : less(item, best))) best = item;
  return best;
}

Value rounded(const Arguments& a) {
  const bool exact = !a.of().is<double>();  // Python rounds an int to one
  const int64_t digits = std::clamp<int64_t>(a.get(1, "precision", 0).whole(), -15, 15);
  const std::string method = to_text(a.get(2, "method", "common"));
  const double scale = std::pow(10.0, static_cast<double>(digits)), value = a.of().real() * scale;
  const double whole = method == "ceil"    ? std::ceil(value)
                       : method == "floor" ? std::floor(value)
                                           : std::nearbyint(value);
  if (exact && method == "common") return digits >= 0 ? Value(a.of().whole()) : whole_of(whole / scale);
  return whole / scale;
}

Value first_of(const Arguments& a) {
  const auto items = items_of(a.of());
  return items->empty() ? Value(Undefined{"the first item"}) : items->front();
}
Value last_of(const Arguments& a) {
  const auto items = items_of(a.of());
  return items->empty() ? Value(Undefined{"the last item"}) : items->back();
}

// Jinja2's: a word begins behind spaces, hyphens and opening brackets, not behind each other sign as Python's does.
Value title(const Arguments& a) {
  std::string text = lower(text_of(a));
  bool begins = true;
  const auto starts_words = [](std::string_view each) {
    return is_space(each) || std::string_view("-({[<").find(each) != std::string_view::npos;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const size_t end = skip(text, at, starts_words);
    begins = begins || end > at;
    at = end;
    if (begins && at < text.size()) text[at] = upper({text[at]})[0];
    begins = false;
  }
  return text;
}

Value as_method(const char* method, const Arguments& a) {
  Arguments copy = a;
  copy.positional[0] = text_of(a);
  return call_method(method, copy);
}

Value absolute(const Arguments& a) {
  return a.of().is<double>() ? Value(std::abs(a.of().real())) : Value(std::abs(a.of().whole()));
}

const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> kFilters = {
      {"abs", absolute},
      {"capitalize", [](const Arguments& a) { return as_method("capitalize", a); }},
      {"count", length},
      {"d", fallback},
      {"default", fallback},
      {"dictsort", dictsort},
      {"first", first_of},
      {"float", to_real},
      {"indent", indent},
      {"int", to_whole},
      {"items", [](const Arguments& a) { return pairs_of(a.of()); }},
      {"join", join},
      {"last", last_of},
      {"length", length},
      {"list", [](const Arguments& a) { return Value(*items_of(a.of())); }},
      {"lower", [](const Arguments& a) { return Value(lower(text_of(a))); }},
      {"map", map},
      {"max", [](const Arguments& a) { return extreme(a, true); }},
      {"min", [](const Arguments& a) { return extreme(a, false); }},
      {"reject", [](const Arguments& a) { return chosen(a, false, false); }},
      {"rejectattr", [](const Arguments& a) { return chosen(a, false, true); }},
      {"replace", [](const Arguments& a) { return as_method("replace", a); }},
      {"reverse", reversed},
      {"round", rounded},
      {"safe", [](const Arguments& a) { return Value(text_of(a)); }},
      {"select", [](const Arguments& a) { return chosen(a, true, false); }},
      {"selectattr", [](const Arguments& a) { return chosen(a, true, true); }},
      {"sort", sorted},
      {"string", [](const Arguments& a) { return Value(text_of(a)); }},
      {"sum", sum},
      {"title", title},
      {"tojson", tojson},
      {"trim", [](const Arguments& a) { return as_method("strip", a); }},
      {"unique", unique},
      {"upper", [](const Arguments& a) { return Value(upper(text_of(a))); }}};
  return kFilters;
}

bool has_items(const Arguments& a) {
  return a.of().is_list() || a.of().is_dict() || a.of().is_text() || a.of().is<Undefined>();
}

bool same_case(const Arguments& a, std::string (*change)(const std::string&)) {
  const std::string text = text_of(a);
  return text == change(text) && change(text) != (change == lower ? upper(text) : lower(text));
}

const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> kTests = {
      {"boolean", [](const Arguments& a) { return a.of().is<bool>(); }},
      {"callable", [](const Arguments& a) { return a.of().is<Macro>() || a.of().is<Function>(); }},
      {"defined", [](const Arguments& a) { return !a.of().is<Undefined>(); }},
      {"divisibleby", [](const Arguments& a) { return calculate("%", a.of(), a.get(1, "num")).whole() == 0; }},
      {"even", [](const Arguments& a) { return a.of().whole() % 2 == 0; }},
      {"false", [](const Arguments& a) { return a.of().is<bool>() && !truth(a.of()); }},
      {"float", [](const Arguments& a) { return a.of().is<double>(); }},
      {"in", [](const Arguments& a) { return contains(a.get(1, "seq"), a.of()); }},
      {"integer", [](const Arguments& a) { return a.of().is<int64_t>(); }},
      {"iterable", has_items},
      {"lower", [](const Arguments& a) { return same_case(a, lower); }},
      {"mapping", [](const Arguments& a) { return a.of().is_dict(); }},
      {"none", [](const Arguments& a) { return a.of().is<None>(); }},
      {"number", [](const Arguments& a) { return a.of().is_number(); }},
      {"odd", [](const Arguments& a) { return a.of().whole() % 2 != 0; }},
      {"sequence", has_items},
      {"string", [](const Arguments& a) { return a.of().is_text(); }},
      {"true", [](const Arguments& a) { return a.of().is<bool>() && truth(a.of()); }},
      {"undefined", [](const Arguments& a) { return a.of().is<Undefined>(); }},
      {"upper", [](const Arguments& a) { return same_case(a, upper); }}};
  return kTests;
}

// eq, ne, lt and their other names; null for others.
const char* comparison_of(const std::string& test) {
  static const std::map<std::string, const char*> kSigns = {
      {"eq", "=="}, {"equalto", "=="}, {"ne", "!="},         {"lt", "<"},  {"lessthan", "<"},
      {"le", "<="}, {"gt", ">"},       {"greaterthan", ">"}, {"ge", ">="}, {"sameas", "=="}};
  const auto found = kSigns.find(test);
  return found == kSigns.end() ? nullptr : found->second;
}

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
  if (const char* sign = comparison_of(name); sign != nullptr) {
    const Value other = arguments.get(1, "other");
    const std::string is = sign;
    if (is == "==" || is == "!=") return equal(arguments.of(), other) == (is == "==");
    if (is == "<" || is == ">=") return less(arguments.of(), other) == (is == "<");
    return less(other, arguments.of()) == (is == ">");
  }
  const auto found = tests().find(name);
  if (found == tests().end()) refuse_name("tests", tests(), name);
  return found->second(arguments);
}

}  // namespace collimate::text::jinja
