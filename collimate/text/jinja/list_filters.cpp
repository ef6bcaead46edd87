// Filters of lists and dictionaries, as Jinja2 has them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/filter_kinds.h"
#include "collimate/text/jinja/letters.h"

namespace collimate::text::jinja {
namespace {

bool is_place(const std::string& name) {
  return !name.empty() && name.size() < 10 && name.find_first_not_of("0123456789") == std::string::npos;
}

bool is_given(const Value& value) { return !value.is<Undefined>() && !value.is<None>(); }

// Returns what stands at an attribute: a number, or names and numbers with dots between; `fallback` where one of these
// is not there.
Value at_path(Value item, const Value& path, const Value& fallback = {}) {
  const auto step = [&](const Value& key) {
    item = item_of(item, key);
    if (item.is<Undefined>() && is_given(fallback)) item = fallback;
  };
  if (!path.is_text()) {
    step(path);
    return item;
  }
  const std::string& names = path.text();
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('.', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    step(is_place(name) ? Value(int64_t{std::stoll(name)}) : Value(name));
    begin = end + 1;
  }
  return item;
}

Value key_of(const Value& item, const Value& attribute) {
  return is_given(attribute) ? at_path(item, attribute) : item;
}

Value folded(const Value& value, bool case_sensitive) {
  return value.is_text() && !case_sensitive ? Value(lower(value.text())) : value;
}

// Returns what an item is sorted by; `attributes` may be several, with commas between.
Value sort_key(const Value& item, const Value& attributes, bool exact) {
  if (!attributes.is_text() || attributes.text().find(',') == std::string::npos)
    return folded(key_of(item, attributes), exact);
  List keys;
  const Value names = call_method("split", {{attributes, ","}, {}});
  for (const Value& name : names.list()) keys.push_back(folded(at_path(item, name), exact));
  return keys;
}

using Keyed = std::pair<Value, Value>;  // a key and its item
List sorted_items(const List& items, const Value& attribute, bool exact, bool reversed) {
  std::vector<Keyed> keyed;
  for (const Value& item : items) keyed.emplace_back(sort_key(item, attribute, exact), item);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& x, const Keyed& y) {
    return reversed ? less(y.first, x.first) : less(x.first, y.first);
  });
  List out;
  for (Keyed& each : keyed) out.push_back(std::move(each.second));
  return out;
}

Value sorted(const Arguments& a) {
  const bool reversed = truth(a.get(1, "reverse", false)), exact = truth(a.get(2, "case_sensitive", false));
  return sorted_items(*items_of(a.of()), a.get(3, "attribute"), exact, reversed);
}

Value pairs_of(const Value& of) {
  if (of.is<Undefined>()) return List{};
  if (!of.is_dict()) refuse("a dictionary", of.kind());
  List pairs;
  for (const auto& [key, member] : of.dict()) pairs.push_back(Value::tuple({key, member}));
  return pairs;
}

Value dictsort(const Arguments& a) {
  const bool exact = truth(a.get(1, "case_sensitive", false)), reversed = truth(a.get(3, "reverse", false));
  const std::string by = to_text(a.get(2, "by", "key"));
  if (by != "key" && by != "value") refuse("by key or value", by);
  return sorted_items(pairs_of(a.of()).list(), by == "value" ? 1 : 0, exact, reversed);
}

Value unique(const Arguments& a) {
  const bool exact = truth(a.get(1, "case_sensitive", false));
  const Value attribute = a.get(2, "attribute");
  const auto items = items_of(a.of());
  List kept, keys;
  for (const Value& item : *items) {
    const Value key = folded(key_of(item, attribute), exact);
    if (!is_key(key)) refuse("values that may be keys", key.kind());
    if (std::ranges::any_of(keys, [&](const Value& other) { return equal(key, other); })) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
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

// Returns, for one item, the arguments of the filter or test that another's argument at `name` names.
Arguments inner_arguments(const Arguments& a, const Value& item, size_t name) {
  Arguments inner{{item}, a.named};
  inner.positional.insert(inner.positional.end(), a.positional.begin() + static_cast<int64_t>(name) + 1,
                          a.positional.end());
  return inner;
}

Value map(const Arguments& a) {
  List out;
  const Value* attribute = find(a.named, "attribute");
  if (attribute == nullptr && a.positional.size() < 2) refuse("map by a filter's name or attribute=", "neither");
  const auto items = items_of(a.of());
  for (const Value& item : *items) {
    if (attribute == nullptr) {
      out.push_back(apply_filter(to_text(a.positional[1]), inner_arguments(a, item, 1)));
    } else {
      out.push_back(at_path(item, *attribute, a.get(99, "default")));
    }
  }
  return out;
}

// Does select, reject and those by attribute: the first argument (behind the attribute) names a test; without one the
// value's truth counts.
Value chosen(const Arguments& a, bool wanted, bool by_attribute) {
  const size_t test = by_attribute ? 2 : 1;
  if (by_attribute && a.positional.size() < 2) refuse("the name of an attribute", "none");
  const auto items = items_of(a.of());
  List kept;
  for (const Value& item : *items) {
    const Value value = by_attribute ? at_path(item, a.positional[1]) : item;
    const bool passes = a.positional.size() > test
                            ? apply_test(to_text(a.positional[test]), inner_arguments(a, value, test))
                            : truth(value);
    if (passes == wanted) kept.push_back(item);
  }
  return kept;
}

Value sum(const Arguments& a) {
  Value total = a.get(2, "start", 0);
  const Value attribute = a.get(1, "attribute");
  const auto items = items_of(a.of());
  for (const Value& item : *items) total = calculate("+", total, key_of(item, attribute));
  return total;
}

Value extreme(const Arguments& a, bool largest) {
  const bool exact = truth(a.get(1, "case_sensitive", false));
  const Value attribute = a.get(2, "attribute");
  const auto items = items_of(a.of());
  Value best = Undefined{"an item of an empty list"}, best_key;
  for (const Value& item : *items) {
    const Value key = folded(key_of(item, attribute), exact);
    if (!best_key.is<Undefined>() && !(largest ? less(best_key, key) : less(key, best_key))) continue;
    best = item;
    best_key = key;
  }
  return best;
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

Value groups(const Arguments& a) {
  const Value attribute = a.get(1, "attribute"), fallback = a.get(2, "default");
  const bool exact = truth(a.get(3, "case_sensitive", false));
  std::vector<std::pair<Value, List>> found;
  const auto items = items_of(a.of());
  for (const Value& item : *items) {
    const Value of = at_path(item, attribute, fallback);
    const auto is_it = [&](const auto& group) { return equal(folded(group.first, exact), folded(of, exact)); };
    auto group = std::ranges::find_if(found, is_it);
    if (group == found.end()) group = found.insert(group, {of, {}});
    group->second.push_back(item);
  }
  List out;
  for (auto& [of, group] : found) out.push_back(Value::group(of, std::move(group)));
  return sorted_items(out, 0, exact, false);
}

Value batch(const Arguments& a) {
  const int64_t size = a.get(1, "linecount").whole();
  const Value fill = a.get(2, "fill_with");
  if (size < 1) refuse("batches of at least 1", fmt::to_string(size));
  const auto items = items_of(a.of());
  List batches, one;
  for (const Value& item : *items) {
    if (static_cast<int64_t>(one.size()) == size) batches.emplace_back(std::exchange(one, {}));
    one.push_back(item);
  }
  if (one.empty()) return batches;
  if (is_given(fill)) {
    expect_room(static_cast<size_t>(size), sizeof(Value));
    one.resize(static_cast<size_t>(size), fill);
  }
  batches.emplace_back(std::move(one));
  return batches;
}

Value slices(const Arguments& a) {
  const int64_t count = a.get(1, "slices").whole();
  const Value fill = a.get(2, "fill_with");
  if (count < 1) refuse("at least 1 slice", fmt::to_string(count));
  expect_room(static_cast<size_t>(count), sizeof(Value));
  const auto items = items_of(a.of());
  const auto size = static_cast<int64_t>(items->size());
  List out;
  auto at = items->begin();
  for (int64_t i = 0; i < count; ++i) {
    const auto end = at + size / count + (i < size % count ? 1 : 0);
    List one(at, end);
    if (is_given(fill) && i >= size % count && size % count > 0) one.push_back(fill);
    if (is_given(fill) && size % count == 0) one.push_back(fill);
    out.emplace_back(std::move(one));
    at = end;
  }
  return out;
}

Value first_of(const Arguments& a) {
  const auto items = items_of(a.of());
  return items->empty() ? Value(Undefined{"the first item"}) : items->front();
}
Value last_of(const Arguments& a) {
  const auto items = items_of(a.of());
  return items->empty() ? Value(Undefined{"the last item"}) : items->back();
}

// Returns an attribute, as Python has them: a dictionary's members are none.
Value attribute(const Arguments& a) {
  const std::string name = to_text(a.get(1, "name"));
  const bool has = a.of().is<std::shared_ptr<Namespace>>() || a.of().is<Loop>();
  return has ? attribute_of(a.of(), name) : Value(Undefined{name});
}

}  // namespace

const std::map<std::string, Filter>& list_filters() {
  static const std::map<std::string, Filter> kFilters = {
      {"attr", attribute},
      {"batch", batch},
      {"dictsort", dictsort},
      {"first", first_of},
      {"groupby", groups},
      {"items", [](const Arguments& a) { return pairs_of(a.of()); }},
      {"join", join},
      {"last", last_of},
      {"list", [](const Arguments& a) { return Value(*items_of(a.of())); }},
      {"map", map},
      {"max", [](const Arguments& a) { return extreme(a, true); }},
      {"min", [](const Arguments& a) { return extreme(a, false); }},
      {"reject", [](const Arguments& a) { return chosen(a, false, false); }},
      {"rejectattr", [](const Arguments& a) { return chosen(a, false, true); }},
      {"reverse", reversed},
      {"select", [](const Arguments& a) { return chosen(a, true, false); }},
      {"selectattr", [](const Arguments& a) { return chosen(a, true, true); }},
      {"slice", slices},
      {"sort", sorted},
      {"sum", sum},
      {"unique", unique}};
  return kFilters;
}

}  // namespace collimate::text::jinja
