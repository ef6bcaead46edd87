// Methods of texts, lists and dictionaries, as Python has them, and functions.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "collimate/base/characters.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/calls.h"
#include "collimate/text/jinja/formats.h"
#include "collimate/text/jinja/letters.h"
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

// Splits at runs of white space, at most `most` times; without limit where that is negative.
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

// Replaces the empty text as Python does: before each character and at the end.
Value between_all(const std::string& text, const std::string& put, int64_t most) {
  Pieces out;
  int64_t done = 0;
  const auto is_left = [&] { return most < 0 || done++ < most; };
  for (const std::string_view each : characters(text)) out << (is_left() ? put : "") << each;
  out << (is_left() ? put : "");
  return out.take();
}

Value replace(const std::string& text, const Arguments& a) {
  const std::string from = to_text(a.get(1, "old")), to = to_text(a.get(2, "new"));
  const int64_t most = a.get(3, "count", -1).whole();
  Pieces out;
  size_t at = 0;
  if (from.empty()) return between_all(text, to, most);
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    const size_t found = place_of(from, text, at);
    if (found == std::string::npos) break;
    out << std::string_view(text).substr(at, found - at) << to;
    at = found + from.size();
  }
  out << std::string_view(text).substr(at);
  return out.take();
}

// A part of a text, as the arguments `start` and `end` of Python's methods of texts say it, in characters.
struct Part {
  std::string text;
  int64_t first = 0;
};

Part part_of(const std::string& text, const Arguments& a) {
  const Value start = a.get(2, "start", None{}), end = a.get(3, "end", None{});
  if (start.is<None>() && end.is<None>()) return {text};
  const int64_t size = base::characters_in(text);
  const int64_t first = start.is<None>() ? 0 : start.whole() < 0 ? start.whole() + size : start.whole();
  return {slice_of(text, start, end, None{}).text(), std::max<int64_t>(first, 0)};
}

// Returns whether a text, or any of a list of them, stands at the beginning or end.
Value at_end(const std::string& whole, const Arguments& a, bool begin) {
  const std::string text = part_of(whole, a).text;
  const Value what = a.get(1, "prefix");
  const std::shared_ptr<const List> all = what.is_list() ? items_of(what) : items_of(List{what});
  return std::any_of(all->begin(), all->end(), [&](const Value& each) {
    if (!each.is_text()) refuse("a text", each.kind());
    charge(kItemCost + each.text().size());
    return begin ? text.starts_with(each.text()) : text.ends_with(each.text());
  });
}

Value position(const std::string& whole, const Arguments& a, bool last, bool strict) {
  const auto [text, first] = part_of(whole, a);
  const std::string what = to_text(a.get(1, "sub"));
  const size_t at = last ? last_place_of(what, text, text.size()) : place_of(what, text, 0);
  if (at == std::string::npos && strict) refuse("a text that has the other", "one that has not");
  if (at == std::string::npos) return -1;
  return first + base::characters_in(std::string_view(text).substr(0, at));
}

Value count(const std::string& whole, const Arguments& a) {
  const std::string text = part_of(whole, a).text, what = to_text(a.get(1, "sub"));
  if (what.empty()) return base::characters_in(text) + 1;
  int64_t found = 0;
  for (size_t at = place_of(what, text, 0); at != std::string::npos; at = place_of(what, text, at + what.size()))
    ++found;
  return found;
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

Value justified(const std::string& text, const Arguments& a, char align) {
  const Value fill = a.get(2, "fillchar", " ");
  if (!fill.is_text() || characters(fill.text()).size() != 1) refuse("one character to fill with", "another value");
  return padded(text, a.get(1, "width").whole(), align, fill.text());
}

// Centers a text as Python does, which puts the odd blank in front where the width is odd too.
Value centered(const std::string& text, const Arguments& a) {
  const int64_t width = a.get(1, "width").whole(), missing = width - base::characters_in(text);
  if (missing <= 0) return text;
  const int64_t left = missing / 2 + (missing & width & 1);
  Arguments both = a;
  both.positional.resize(2);
  both.positional[1] = base::characters_in(text) + left;
  const Value fill = a.get(2, "fillchar", " ");
  both.positional.push_back(fill);
  const Value front = justified(text, both, '>');
  both.positional[1] = width;
  return justified(front.text(), both, '<');
}

// Fills a text with zeros, which go behind a sign.
Value filled(const std::string& text, const Arguments& a) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const int64_t width = a.get(1, "width").whole();
  return text.substr(0, has_sign ? 1 : 0) + padded(text.substr(has_sign ? 1 : 0), width - (has_sign ? 1 : 0), '>', "0");
}

// Returns what stands before a text, the text and what stands behind it.
Value parted(const std::string& text, const Arguments& a, bool last) {
  const std::string what = to_text(a.get(1, "sep"));
  if (what.empty()) refuse("a separator", "an empty text");
  const size_t at = last ? last_place_of(what, text, text.size()) : place_of(what, text, 0);
  if (at == std::string::npos) return last ? Value::tuple({"", "", text}) : Value::tuple({text, "", ""});
  return Value::tuple({text.substr(0, at), what, text.substr(at + what.size())});
}

using Text = const std::string&;
using Given = const Arguments&;

const std::map<std::string, Method>& asking_methods() {
  static const std::map<std::string, Method> kMethods = {
      {"isalnum", [](Text t, Given) { return Value(is_all(t, Letters::kAlnum)); }},
      {"isalpha", [](Text t, Given) { return Value(is_all(t, Letters::kAlpha)); }},
      {"isdecimal", [](Text t, Given) { return Value(is_all(t, Letters::kDecimal)); }},
      {"isdigit", [](Text t, Given) { return Value(is_all(t, Letters::kDigit)); }},
      {"islower", [](Text t, Given) { return Value(has_case(t, false)); }},
      {"isnumeric", [](Text t, Given) { return Value(is_all(t, Letters::kNumeric)); }},
      {"isspace", [](Text t, Given) { return Value(!t.empty() && skip(t, 0, is_space) == t.size()); }},
      {"istitle", [](Text t, Given) { return Value(is_titled(t)); }},
      {"isupper", [](Text t, Given) { return Value(has_case(t, true)); }}};
  return kMethods;
}

const std::map<std::string, Method>& text_methods() {
  static const std::map<std::string, Method> kMethods = {
      {"capitalize", [](Text t, Given) { return Value(capitalized(t)); }},
      {"casefold", [](Text t, Given) { return Value(lower(t)); }},
      {"center", centered},
      {"count", count},
      {"endswith", [](Text t, Given a) { return at_end(t, a, false); }},
      {"find", [](Text t, Given a) { return position(t, a, false, false); }},
      {"format", [](Text, Given a) { return Value(brace_format(a)); }},
      {"index", [](Text t, Given a) { return position(t, a, false, true); }},
      {"join", joined},
      {"ljust", [](Text t, Given a) { return justified(t, a, '<'); }},
      {"lower", [](Text, Given a) { return apply_filter("lower", a); }},
      {"lstrip", [](Text t, Given a) { return Value(strip(t, a, true, false)); }},
      {"partition", [](Text t, Given a) { return parted(t, a, false); }},
      {"removeprefix", [](Text t, Given a) { return without(t, a, true); }},
      {"removesuffix", [](Text t, Given a) { return without(t, a, false); }},
      {"replace", replace},
      {"rfind", [](Text t, Given a) { return position(t, a, true, false); }},
      {"rindex", [](Text t, Given a) { return position(t, a, true, true); }},
      {"rjust", [](Text t, Given a) { return justified(t, a, '>'); }},
      {"rpartition", [](Text t, Given a) { return parted(t, a, true); }},
      {"rsplit", [](Text t, Given a) { return split(t, a, true); }},
      {"rstrip", [](Text t, Given a) { return Value(strip(t, a, false, true)); }},
      {"split", [](Text t, Given a) { return split(t, a, false); }},
      {"splitlines", split_lines},
      {"startswith", [](Text t, Given a) { return at_end(t, a, true); }},
      {"strip", [](Text t, Given a) { return Value(strip(t, a, true, true)); }},
      {"swapcase", [](Text t, Given) { return Value(swapped(t)); }},
      {"title", [](Text t, Given) { return Value(titled(t)); }},
      {"upper", [](Text, Given a) { return apply_filter("upper", a); }},
      {"zfill", filled}};
  return kMethods;
}

Value dict_method(const std::string& name, const Arguments& a) {
  if (name == "get") {
    const Value key = a.get(1, "key");
    const Value* member = find(a.of().dict(), key);
    return member == nullptr ? a.get(2, "default", None{}) : *member;
  }
  if (name == "items") return apply_filter("items", {{a.of()}, {}});
  if (name == "copy") return a.of();
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
  if (name == "copy" && !a.of().is_tuple()) return a.of();
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

// Does dict(): takes the members of a dictionary or the pairs of a list, and sets those given by name over them.
Value made_dict(const Arguments& a) {
  Dict members;
  const auto set = [&](const Value& key, const Value& member) {
    if (!is_key(key)) refuse("a text, a number or a tuple as a key", key.kind());
    const auto same = std::ranges::find_if(members, [&](const auto& each) { return equal(each.first, key); });
    if (same == members.end()) {
      members.emplace_back(key, member);
    } else {
      same->second = member;
    }
  };
  if (!a.positional.empty()) {
    const Value pairs = a.of().is_dict() ? apply_filter("items", {{a.of()}, {}}) : Value(*items_of(a.of()));
    for (const Value& pair : pairs.list()) {
      const auto parts = items_of(pair);
      if (parts->size() != 2) refuse("pairs of a key and a value", pair.kind());
      set((*parts)[0], (*parts)[1]);
    }
  }
  for (const auto& [name, member] : a.named) set(Value(name), member);
  return members;
}

Value turns(List items, bool joins) {
  if (items.empty()) refuse("items to go through", "none");
  return std::make_shared<Turns>(Turns{std::move(items), 0, joins});
}

// Does next() and reset() of a cycler, and the call of a joiner, whose name is empty.
Value turn_method(const std::string& name, Turns& turns) {
  if (turns.joins != name.empty()) refuse("next or reset of a cycler, or a joiner's call", fmt::format("'{}'", name));
  if (turns.joins) return std::exchange(turns.at, 1) == 0 ? Value("") : turns.items[0];
  if (name == "reset") turns.at = 0;
  if (name == "reset") return None{};
  if (name != "next") refuse("next or reset of a cycler", fmt::format("'{}'", base::beginning_of(name, 40)));
  return turns.items[std::exchange(turns.at, (turns.at + 1) % turns.items.size())];
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
      {"cycler", [](const Arguments& a) { return turns(a.positional, false); }},
      {"dict", made_dict},
      {"joiner", [](const Arguments& a) { return turns({a.get(0, "sep", ", ")}, true); }},
      {"namespace",
       [](const Arguments& a) {
         auto made = std::make_shared<Namespace>();
         if (!a.positional.empty() && a.of().is_dict())
           for (const auto& [key, member] : a.of().dict()) made->members.emplace_back(to_text(key), member);
         for (const auto& set : a.named) {
           std::erase_if(made->members, [&](const auto& earlier) { return earlier.first == set.first; });
           made->members.push_back(set);
         }
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
    if (is_dict_method(name) || find(of.dict(), name) == nullptr) return dict_method(name, arguments);
    refuse("a function", fmt::format("the member '{}' of a dictionary", name));
  }
  if (of.is_list()) return list_method(name, arguments);
  if (of.is<std::shared_ptr<Turns>>()) return turn_method(name, *of.as<std::shared_ptr<Turns>>());
  if (!of.is_text())
    refuse(fmt::format("a text, list or dictionary for .{}()", base::beginning_of(name, 40)), of.kind());
  charge(of.text().size());
  const auto found = text_methods().find(name), asking = asking_methods().find(name);
  if (asking != asking_methods().end()) return asking->second(of.text(), arguments);
  if (found == text_methods().end())
    refuse("a method of texts that is known, as strip or split", fmt::format("'{}'", base::beginning_of(name, 40)));
  return found->second(of.text(), arguments);
}

bool is_function(const std::string& name) { return functions().contains(name); }
Value call_function(const std::string& name, const Arguments& arguments) { return functions().at(name)(arguments); }

}  // namespace collimate::text::jinja
