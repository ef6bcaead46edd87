// Methods of texts, lists and dictionaries, as Python has them, and functions.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <map>
#include <set>

#include "collimate/base/characters.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/calls.h"
#include "collimate/text/jinja/spaces.h"

namespace collimate::text::jinja {
namespace {

using Method = Value (*)(const std::string& text, const Arguments& a);

std::string strip(const std::string& text, const Arguments& a, bool left, bool right) {
  const Value chars = a.get(1, "chars");
  std::set<std::string_view> away;
  if (chars.is_text())
    for (const std::string_view each : characters(chars.text())) away.insert(each);
  const IsKind goes = [&](std::string_view each) { return chars.is_text() ? away.contains(each) : is_space(each); };
  const size_t end = right ? skip_back(text, text.size(), goes) : text.size();
  const size_t begin = left ? skip(std::string_view(text).substr(0, end), 0, goes) : 0;
  return text.substr(begin, end - begin);
}

// Splits at runs of whitespace, at most `most` times; below 0 without limit.
List split_spaces(const std::string& text, int64_t most) {
  List parts;
  for (size_t at = skip(text, 0, is_space); at < text.size();) {
    const bool all = static_cast<int64_t>(parts.size()) == most;
    const size_t end = all ? text.size() : skip(text, at, is_no_space);
    parts.emplace_back(text.substr(at, end - at));
    at = skip(text, end, is_space);
  }
  return parts;
}

List split_spaces_back(const std::string& text, int64_t most) {
  List parts;
  for (size_t end = skip_back(text, text.size(), is_space); end > 0;) {
    const bool all = static_cast<int64_t>(parts.size()) == most;
    const size_t begin = all ? 0 : skip_back(text, end, is_no_space);
    parts.emplace_back(text.substr(begin, end - begin));
    end = skip_back(text, begin, is_space);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value split(const std::string& text, const Arguments& a, bool from_right) {
  const Value separator = a.get(1, "sep");
  const int64_t most = a.get(2, "maxsplit", -1).whole();
  if (!separator.is_text()) return from_right ? split_spaces_back(text, most) : split_spaces(text, most);
  const std::string& between = separator.text();
  if (between.empty()) refuse("a separator", "an empty text");
  List parts;
  size_t begin = 0, end = text.size();
  for (int64_t cuts = 0; (most < 0 || cuts < most) && end - begin >= between.size(); ++cuts) {
    const size_t at = from_right ? last_place_of(between, text, end - between.size()) : place_of(between, text, begin);
    if (at == std::string::npos) break;
    const size_t behind = at + between.size();
    parts.emplace_back(from_right ? text.substr(behind, end - behind) : text.substr(begin, at - begin));
    (from_right ? end : begin) = from_right ? at : behind;
  }
  parts.emplace_back(text.substr(begin, end - begin));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Value split_lines(const std::string& text, const Arguments& a) {
  List lines;
  for (const std::string_view line : lines_of(text, truth(a.get(1, "keepends", false)))) lines.emplace_back(line);
  return lines;
}

Value replace(const std::string& text, const Arguments& a) {
  const std::string from = to_text(a.get(1, "old")), to = to_text(a.get(2, "new"));
  const int64_t most = a.get(3, "count", -1).whole();
  Pieces out;
  size_t at = 0;
  if (from.empty()) refuse("a text to replace", "an empty one");
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t found = place_of(from, text, at);
    if (found == std::string::npos) break;
    out << std::string_view(text).substr(at, found - at) << to;
    at = found + from.size();
  }
  out << std::string_view(text).substr(at);
  return out.take();
}

// A text or any of a list of them at an end.
Value at_end(const std::string& text, const Arguments& a, bool begin) {
  const Value what = a.get(1, "prefix");
  const std::shared_ptr<const List> all = what.is_list() ? items_of(what) : items_of(List{what});
  return std::any_of(all->begin(), all->end(), [&](const Value& each) {
    if (!each.is_text()) refuse("a text", each.kind());
    charge(kItemCost + each.text().size());
    return begin ? text.starts_with(each.text()) : text.ends_with(each.text());
  });
}

Value position(const std::string& text, const Arguments& a, bool last) {
  const std::string what = to_text(a.get(1, "sub"));
  const size_t at = last ? last_place_of(what, text, text.size()) : place_of(what, text, 0);
  if (at == std::string::npos) return -1;
  return base::characters_in(std::string_view(text).substr(0, at));
}

Value count(const std::string& text, const Arguments& a) {
  const std::string what = to_text(a.get(1, "sub"));
  if (what.empty()) refuse("a text to count", "an empty one");
  int64_t found = 0;
  for (size_t at = place_of(what, text, 0); at != std::string::npos; at = place_of(what, text, at + what.size()))
    ++found;
  return found;
}

// The first letter of each word, or of the text, large and the others small.
std::string titled(std::string text, bool every_word) {
  bool begins = true;
  for (char& c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (letter >= 128) begins = begins && every_word;
    if (letter >= 128) continue;
    c = static_cast<char>(begins ? std::toupper(letter) : std::tolower(letter));
    begins = every_word && std::isalpha(letter) == 0;
  }
  return text;
}

Value is_all(const std::string& text, int (*kind)(int)) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [&](char c) { return kind(static_cast<unsigned char>(c)) != 0; });
}

Value joined(const std::string& text, const Arguments& a) {
  Pieces out;
  const auto items = items_of(a.get(1, "iterable"));
  for (size_t i = 0; i < items->size(); ++i) {
    const Value& item = (*items)[i];
    if (!item.is_text()) refuse("texts to join", item.kind());
    if (i > 0) out << text;
    out << item.text();
  }
  return out.take();
}

Value without(const std::string& text, const Arguments& a, bool begin) {
  const std::string what = to_text(a.get(1, "prefix"));
  const bool there = begin ? text.starts_with(what) : text.ends_with(what);
  if (!there) return text;
  return begin ? text.substr(what.size()) : text.substr(0, text.size() - what.size());
}

const std::map<std::string, Method>& text_methods() {
  using Text = const std::string&;
  using Given = const Arguments&;
  static const std::map<std::string, Method> kMethods = {
      {"capitalize", [](Text t, Given) { return Value(titled(t, false)); }},
      {"count", count},
      {"endswith", [](Text t, Given a) { return at_end(t, a, false); }},
      {"find", [](Text t, Given a) { return position(t, a, false); }},
      {"isalpha", [](Text t, Given) { return is_all(t, std::isalpha); }},
      {"isdigit", [](Text t, Given) { return is_all(t, std::isdigit); }},
      {"isspace", [](Text t, Given) { return Value(!t.empty() && skip(t, 0, is_space) == t.size()); }},
      {"join", joined},
      {"lower", [](Text, Given a) { return apply_filter("lower", a); }},
      {"lstrip", [](Text t, Given a) { return Value(strip(t, a, true, false)); }},
      {"removeprefix", [](Text t, Given a) { return without(t, a, true); }},
      {"removesuffix", [](Text t, Given a) { return without(t, a, false); }},
      {"replace", replace},
      {"rfind", [](Text t, Given a) { return position(t, a, true); }},
      {"rsplit", [](Text t, Given a) { return split(t, a, true); }},
      {"rstrip", [](Text t, Given a) { return Value(strip(t, a, false, true)); }},
      {"split", [](Text t, Given a) { return split(t, a, false); }},
      {"splitlines", split_lines},
      {"startswith", [](Text t, Given a) { return at_end(t, a, true); }},
      {"strip", [](Text t, Given a) { return Value(strip(t, a, true, true)); }},
      {"title", [](Text t, Given) { return Value(titled(t, true)); }},
      {"upper", [](Text, Given a) { return apply_filter("upper", a); }}};
  return kMethods;
}

Value dict_method(const std::string& name, const Arguments& a) {
  if (name == "get") {
    const Value key = a.get(1, "key");
    const Value* member = find(a.of().dict(), key);
    return member == nullptr ? a.get(2, "default", None{}) : *member;
  }
  if (name == "items") return apply_filter("items", a);
  if (name == "keys") return items_of(a.of());
  List values;
  for (const auto& [key, member] : a.of().dict()) values.push_back(member);
  if (name == "values") return values;
  refuse("get, items, keys or values of a dictionary", fmt::format("'{}'", base::beginning_of(name, 40)));
}

Value list_method(const std::string& name, const Arguments& a) {
  const List& items = a.of().list();
  const Value what = a.get(1, "value");
  const auto is_it = [&](const Value& item) { return equal(item, what); };
  if (name == "count") return static_cast<int64_t>(std::count_if(items.begin(), items.end(), is_it));
  if (name == "index") {
    const auto found = std::find_if(items.begin(), items.end(), is_it);
    if (found == items.end()) refuse("an item of the list", "another value");
    return static_cast<int64_t>(found - items.begin());
  }
  refuse("count or index of a list, which may not be changed", fmt::format("'{}'", base::beginning_of(name, 40)));
}

Value range(const Arguments& a) {
  const bool one = a.positional.size() == 1;
  const int64_t first = one ? 0 : a.get(0, "start").whole(), last = a.get(one ? 0 : 1, "stop").whole();
  const int64_t step = a.get(2, "step", 1).whole();
  if (step == 0) refuse("a step", "0");
  List numbers;
  bool over = false;
  for (int64_t at = first; !over && (step > 0 ? at < last : at > last); over = __builtin_add_overflow(at, step, &at)) {
    if (numbers.size() >= 100000) refuse("a range of at most 100,000 numbers", "more");
    numbers.emplace_back(at);
  }
  return numbers;
}

Value now(const Arguments& a) {
  const std::time_t seconds = std::time(nullptr);
  std::tm local = {};
  localtime_r(&seconds, &local);
  char text[256];
  return std::string(text, std::strftime(text, sizeof(text), to_text(a.get(0, "format", "%Y-%m-%d")).c_str(), &local));
}

using FunctionPointer = Value (*)(const Arguments&);
const std::map<std::string, FunctionPointer>& functions() {
  static const std::map<std::string, FunctionPointer> kFunctions = {
      {"dict", [](const Arguments& a) { return Value(Dict(a.named.begin(), a.named.end())); }},
      {"namespace",
       [](const Arguments& a) {
         auto made = std::make_shared<Namespace>();
         if (!a.positional.empty() && a.of().is_dict())
           for (const auto& [key, member] : a.of().dict()) made->members.emplace_back(to_text(key), member);
         made->members.insert(made->members.end(), a.named.begin(), a.named.end());
         return Value(made);
       }},
      {"raise_exception",
       [](const Arguments& a) -> Value {
         refuse("a conversation that the template takes", to_text(a.get(0, "message")));
       }},
      {"range", range},
      {"strftime_now", now}};
  return kFunctions;
}

}  // namespace

Value call_method(const std::string& name, const Arguments& arguments) {
  const Value& of = arguments.of();
  if (of.is_dict()) {
    if (const Value* member = find(of.dict(), name); member == nullptr) return dict_method(name, arguments);
    refuse("a function", fmt::format("the member '{}' of a dictionary", name));
  }
  if (of.is_list()) return list_method(name, arguments);
  if (!of.is_text())
    refuse(fmt::format("a text, list or dictionary for .{}()", base::beginning_of(name, 40)), of.kind());
  charge(of.text().size());
  const auto found = text_methods().find(name);
  if (found == text_methods().end())
    refuse("a method of texts that is known, as strip or split", fmt::format("'{}'", base::beginning_of(name, 40)));
  return found->second(of.text(), arguments);
}

bool is_function(const std::string& name) { return functions().contains(name); }
Value call_function(const std::string& name, const Arguments& arguments) { return functions().at(name)(arguments); }

}  // namespace collimate::text::jinja
