// Filters of texts, as Jinja2 has them.
#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/jinja/filter_kinds.h"
#include "collimate/text/jinja/formats.h"
#include "collimate/text/jinja/letters.h"
#include "collimate/text/jinja/spaces.h"

namespace collimate::text::jinja {
namespace {

// Returns the text as markup where `of` is markup.
Value markup_like(const Value& of, std::string text) {
  return of.is_markup() ? Value::markup(std::move(text)) : Value(std::move(text));
}

Value as_method(const char* method, const Arguments& a) {
  Arguments copy = a;
  copy.positional[0] = text_of(a);
  return markup_like(a.of(), to_text(call_method(method, copy)));
}

Value indent(const Arguments& a) {
  const Value width = a.get(1, "width", 4);
  const std::string space = width.is_text()
                                ? width.text()
                                : std::string(static_cast<size_t>(std::clamp<int64_t>(width.whole(), 0, 1000)), ' ');
  const bool first = truth(a.get(2, "first", false)), blank = truth(a.get(3, "blank", false));
  if (!a.of().is_text()) refuse("a text to indent", a.of().kind());
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

// Capitalizes words as Jinja2 does: a word begins behind spaces, hyphens and opening brackets, not behind every other
// sign as Python's does.
Value title(const Arguments& a) {
  const std::string text = text_of(a);
  const auto starts_words = [](std::string_view each) {
    return is_space(each) || std::string_view("-({[<").find(each) != std::string_view::npos;
  };
  const auto goes_on = [&](std::string_view each) { return !starts_words(each); };
  Pieces out;
  for (size_t at = 0; at < text.size();) {
    const size_t word = skip(text, at, starts_words), end = skip(text, word, goes_on);
    out << std::string_view(text).substr(at, word - at) << capitalized(std::string_view(text).substr(word, end - word));
    at = end;
  }
  return out.take();
}

Value escape(const Arguments& a) { return a.of().is_markup() ? a.of() : Value::markup(escaped(text_of(a))); }

Value center(const Arguments& a) {
  Arguments copy = a;
  copy.positional[0] = text_of(a);
  if (copy.positional.size() < 2) copy.positional.push_back(a.get(1, "width", 80));
  return call_method("center", copy);
}

Value format(const Arguments& a) {
  if (!a.named.empty() && a.positional.size() > 1) refuse("values in a row or by name", "both");
  if (a.named.empty())
    return calculate("%", a.of().is_text() ? a.of() : Value(text_of(a)),
                     Value::tuple(List(a.positional.begin() + 1, a.positional.end())));
  Dict named;
  for (const auto& [name, value] : a.named) named.emplace_back(Value(name), value);
  return calculate("%", a.of().is_text() ? a.of() : Value(text_of(a)), Value(std::move(named)));
}

Value truncate(const Arguments& a) {
  const std::string text = text_of(a), end = to_text(a.get(3, "end", "..."));
  const Value length = a.get(1, "length", 255), leeway = a.get(4, "leeway", None{});
  const auto all = characters(text);
  const auto ending = static_cast<int64_t>(characters(end).size());
  const int64_t most = length.whole(), more = leeway.is<None>() ? 5 : leeway.whole();
  if (most < ending || more < 0) refuse("a length of at least the end's and a leeway of 0 or more", "less");
  if (static_cast<int64_t>(all.size()) <= most + more) return text;
  std::string kept(text.data(), base::at(all, most - ending).data());
  if (const size_t blank = kept.rfind(' '); !truth(a.get(2, "killwords", false)) && blank != std::string::npos)
    kept.resize(blank);
  return kept + end;
}

// Encodes all bytes but letters, digits, "_.-~" and `safe` by percent signs (RFC 3986).
std::string percent_encoded(const std::string& text, std::string_view safe) {
  charge(3 * text.size());
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 128 && (std::isalnum(byte) != 0 || std::string_view("_.-~").find(c) != std::string_view::npos);
    if (plain || safe.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

// Encodes a value as a form's field, which has + for a blank.
std::string field(const Value& value) {
  std::string text = percent_encoded(to_text(value), " ");
  std::replace(text.begin(), text.end(), ' ', '+');
  return text;
}

Value urlencode(const Arguments& a) {
  if (!a.of().is_dict() && !a.of().is_list()) return percent_encoded(text_of(a), "/");
  const Value pairs = a.of().is_dict() ? apply_filter("items", {{a.of()}, {}}) : a.of();
  Pieces out;
  for (const Value& pair : pairs.list()) {
    const auto parts = items_of(pair);
    if (parts->size() != 2) refuse("pairs of a name and a value", pair.kind());
    if (!out.empty()) out << '&';
    out << field((*parts)[0]) << '=' << field((*parts)[1]);
  }
  return out.take();
}

double number_of(const Value& value) {
  const Value number = apply_filter("float", {{value, None{}}, {}});
  if (number.is<None>()) refuse("a number", value.kind());
  return number.real();
}

Value filesize(const Arguments& a) {
  const bool binary = truth(a.get(1, "binary", false));
  const double base = binary ? 1024 : 1000, bytes = number_of(a.of());
  if (bytes == 1) return "1 Byte";
  if (bytes < base) return fmt::format("{} Bytes", static_cast<int64_t>(bytes));
  double unit = base;
  std::string out;
  for (const char prefix : binary ? std::string("KMGTPEZY") : std::string("kMGTPEZY")) {
    unit *= base;
    out = fmt::format("{:.1f} {}{}", base * bytes / unit, prefix, binary ? "iB" : "B");
    if (bytes < unit) break;
  }
  return out;
}

}  // namespace

std::string text_of(const Arguments& a) { return to_text(a.of()); }

std::string escaped(const std::string& text) {
  Pieces out;
  for (const char c : text) {
    const char* name = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '\'' ? "&#39;" : nullptr;
    if (c == '"') name = "&#34;";
    name == nullptr ? out << c : out << std::string_view(name);
  }
  return out.take();
}

const std::map<std::string, Filter>& text_filters() {
  static const std::map<std::string, Filter> kFilters = {
      {"capitalize", [](const Arguments& a) { return markup_like(a.of(), capitalized(text_of(a))); }},
      {"center", center},
      {"e", escape},
      {"escape", escape},
      {"filesizeformat", filesize},
      {"forceescape", [](const Arguments& a) { return Value::markup(escaped(text_of(a))); }},
      {"format", format},
      {"indent", indent},
      {"lower", [](const Arguments& a) { return markup_like(a.of(), lower(text_of(a))); }},
      {"replace", [](const Arguments& a) { return as_method("replace", a); }},
      {"safe", [](const Arguments& a) { return Value::markup(text_of(a)); }},
      {"string", [](const Arguments& a) { return markup_like(a.of(), text_of(a)); }},
      {"title", title},
      {"trim", [](const Arguments& a) { return as_method("strip", a); }},
      {"truncate", truncate},
      {"upper", [](const Arguments& a) { return markup_like(a.of(), upper(text_of(a))); }},
      {"urlencode", urlencode},
      {"wordcount", [](const Arguments& a) { return Value(words_in(text_of(a))); }}};
  return kFilters;
}

}  // namespace collimate::text::jinja
