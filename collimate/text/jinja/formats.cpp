#include "collimate/text/jinja/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>

#include "collimate/base/at.h"
#include "collimate/base/characters.h"
#include "collimate/text/jinja/budget.h"
#include "collimate/text/utf8.h"

namespace collimate::text::jinja {
namespace {

// Says how a value is written, in the terms of Python's format specification.
struct Form {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0, grouping = 0;
  bool alternate = false, zeros = false;
  int64_t width = 0, precision = -1;
};

[[noreturn]] void refuse_form(const std::string& got) { refuse("a format of Python's that fits its value", got); }

int64_t read_number(std::string_view& text, int64_t otherwise) {
  int64_t number = 0;
  const size_t begin = text.size();
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    number = std::min<int64_t>(10 * number + (text.front() - '0'), 1 << 20);
    text.remove_prefix(1);
  }
  return text.size() == begin ? otherwise : number;
}

// Writes `sign` between groups of three digits, from the end of the whole part.
std::string grouped(const std::string& digits, char sign) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += sign;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string whole_digits(uint64_t number, const Form& form) {
  switch (form.type) {
    case 'x':
      return (form.alternate ? "0x" : "") + fmt::format("{:x}", number);
    case 'X':
      return (form.alternate ? "0X" : "") + fmt::format("{:X}", number);
    case 'o':
      return (form.alternate ? "0o" : "") + fmt::format("{:o}", number);
    case 'b':
      return (form.alternate ? "0b" : "") + fmt::format("{:b}", number);
    default:
      return std::to_string(number);
  }
}

std::string real_digits(double number, const Form& form) {
  const bool percent = form.type == '%';
  const std::string pattern = std::string("%") + (form.alternate ? "#" : "") + ".*" + (percent ? 'f' : form.type);
  const int precision = static_cast<int>(std::min<int64_t>(form.precision < 0 ? 6 : form.precision, 1000));
  char text[1400];
  const int size = std::snprintf(text, sizeof(text), pattern.c_str(), precision, percent ? 100 * number : number);
  return std::string(text, static_cast<size_t>(size)) + (percent ? "%" : "");
}

std::string with_sign(bool negative, const std::string& digits, const Form& form) {
  std::string sign = negative ? "-" : form.sign == '-' ? "" : std::string(1, form.sign);
  const auto size = static_cast<int64_t>(sign.size() + digits.size());
  if (form.zeros && size < form.width) sign.append(static_cast<size_t>(form.width - size), '0');
  return sign + digits;
}

std::string number_text(const Value& value, Form form) {
  constexpr std::string_view kReal = "eEfFgG%";
  if (value.is<double>() || kReal.find(form.type) != std::string_view::npos) {
    if (form.type == 0 && form.precision < 0)
      return with_sign(std::signbit(value.real()), to_text(Value(std::abs(value.real()))), form);
    if (form.type == 0) form.type = 'g';
    if (kReal.find(form.type) == std::string_view::npos) refuse_form(fmt::format("'{}' of a real number", form.type));
    const std::string digits = real_digits(std::abs(value.real()), form);
    return with_sign(std::signbit(value.real()), form.grouping ? grouped(digits, form.grouping) : digits, form);
  }
  const int64_t number = value.whole();
  const uint64_t size = number < 0 ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number);
  std::string digits = whole_digits(size, form);
  if (form.precision > static_cast<int64_t>(digits.size()))
    digits.insert(0, static_cast<size_t>(form.precision) - digits.size(), '0');
  return with_sign(number < 0, form.grouping ? grouped(digits, form.grouping) : digits, form);
}

std::string first_characters(const std::string& text, int64_t most) {
  const auto all = characters(text);
  if (most < 0 || most >= static_cast<int64_t>(all.size())) return text;
  return text.substr(0, static_cast<size_t>(base::at(all, most).data() - text.data()));
}

// ---- format % values

// Gives a place its value: the next one, or the one of a name.
class GivenValues {
 public:
  explicit GivenValues(const Value& values) : values_(values) {}
  const Value& next() {
    if (!values_.is_tuple()) {
      if (used_++ > 0) refuse_form("fewer values than places");
      return values_;
    }
    if (used_ >= values_.list().size()) refuse_form("fewer values than places");
    return values_.list()[used_++];
  }
  Value named(const std::string& name) {
    if (!values_.is_dict()) refuse_form(fmt::format("no dictionary for %({})", name));
    const Value* member = find(values_.dict(), name);
    if (member == nullptr) refuse_form(fmt::format("no value of '{}'", name));
    named_ = true;
    return *member;
  }
  void finish() const {
    const size_t count = values_.is_tuple() ? values_.list().size() : 1;
    const bool spare = values_.is_dict() || values_.is_list();
    if (used_ < count && !(spare && !values_.is_tuple()) && !named_) refuse_form("more values than places");
  }

 private:
  const Value& values_;
  size_t used_ = 0;
  bool named_ = false;
};

void read_flags(std::string_view& rest, Form& form) {
  form.align = '>';
  for (; !rest.empty(); rest.remove_prefix(1)) {
    const char c = rest.front();
    if (c == '-') {
      form.align = '<';
    } else if (c == '+' || (c == ' ' && form.sign != '+')) {
      form.sign = c;
    } else if (c == '0') {
      form.zeros = true;
    } else if (c == '#') {
      form.alternate = true;
    } else if (c != ' ') {
      return;
    }
  }
}

int64_t read_width(std::string_view& rest, GivenValues& given, int64_t otherwise) {
  if (!rest.starts_with('*')) return read_number(rest, otherwise);
  rest.remove_prefix(1);
  return std::min<int64_t>(given.next().whole(), 1 << 20);
}

std::string character_of(const Value& value) {
  if (value.is_text() && characters(value.text()).size() == 1) return value.text();
  std::string out;
  if (!value.is<int64_t>() || value.whole() < 0 || value.whole() > 0x10FFFF) refuse_form("%c of no character");
  append_utf8(out, static_cast<uint32_t>(value.whole()));
  return out;
}

// Returns what `%d` and the like write of a number.
std::string percent_number(const Value& value, Form form) {
  constexpr std::string_view kWhole = "diuxXo", kAny = "diu";
  const bool whole = kWhole.find(form.type) != std::string_view::npos;
  if (!value.is_number()) refuse_form(fmt::format("%{} of {}", form.type, value.kind()));
  if (form.align == '<') form.zeros = false;
  if (!whole) return number_text(value, form);
  if (value.is<double>() && kAny.find(form.type) == std::string_view::npos) refuse_form("a real number");
  if (value.is<double>() && !(std::abs(value.real()) < 0x1p63)) refuse_form("a number beyond 64 bits");
  if (kAny.find(form.type) != std::string_view::npos) form.type = 'd';
  return number_text(Value(value.is<double>() ? static_cast<int64_t>(value.real()) : value.whole()), form);
}

std::string converted(const Value& value, Form form) {
  switch (form.type) {
    case 's':
      return first_characters(to_text(value), form.precision);
    case 'r':
    case 'a':
      return first_characters(to_repr(value), form.precision);
    case 'c':
      return character_of(value);
    default:
      if (std::string_view("diuxXoeEfFgG").find(form.type) == std::string_view::npos)
        refuse_form(fmt::format("%{}", form.type));
      return percent_number(value, form);
  }
}

// Writes one place, behind its %.
std::string placed(std::string_view& rest, GivenValues& given) {
  Form form;
  std::optional<Value> named;
  if (rest.starts_with('(')) {
    const size_t end = rest.find(')');
    if (end == std::string_view::npos) refuse_form("a name without its end");
    named = given.named(std::string(rest.substr(1, end - 1)));
    rest.remove_prefix(end + 1);
  }
  read_flags(rest, form);
  form.width = read_width(rest, given, 0);
  if (form.width < 0) form.align = '<';
  form.width = std::abs(form.width);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    form.precision = std::max<int64_t>(0, read_width(rest, given, 0));
  }
  while (!rest.empty() && std::string_view("hlL").find(rest.front()) != std::string_view::npos) rest.remove_prefix(1);
  if (rest.empty()) refuse_form("a % at the end");
  form.type = rest.front();
  rest.remove_prefix(1);
  if (form.type == '%') return "%";
  return padded(converted(named ? *named : given.next(), form), form.width, form.align);
}

// ---- str.format()

char take(std::string_view& rest) {
  const char c = rest.front();
  rest.remove_prefix(1);
  return c;
}

// Reads [[fill]align][sign][#][0][width][grouping][.precision][type].
Form form_of(std::string_view rest) {
  constexpr std::string_view kAligns = "<>^=";
  Form form;
  const auto is_align = [&](size_t at) { return at < rest.size() && kAligns.find(rest[at]) != std::string_view::npos; };
  const size_t first = rest.empty() ? 0 : std::max<size_t>(1, utf8_length(rest));
  if (first > 0 && is_align(first)) {
    form.fill = std::string(rest.substr(0, first));
    rest.remove_prefix(first);
  }
  if (is_align(0)) form.align = take(rest);
  if (!rest.empty() && std::string_view("+- ").find(rest.front()) != std::string_view::npos) form.sign = take(rest);
  if (rest.starts_with('#')) form.alternate = take(rest) == '#';
  if (rest.starts_with('0')) form.zeros = take(rest) == '0' && form.align == 0;
  if (form.align == '=') form.zeros = form.fill == "0";
  form.width = read_number(rest, 0);
  if (rest.starts_with(',') || rest.starts_with('_')) form.grouping = take(rest);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    form.precision = read_number(rest, -1);
    if (form.precision < 0) refuse_form("a precision without digits");
  }
  if (!rest.empty()) form.type = take(rest);
  if (!rest.empty()) refuse_form(fmt::format("'{}' behind a format", rest));
  return form;
}

std::string formatted(const Value& value, const std::string& spec) {
  if (spec.empty()) return to_text(value);
  const Form form = form_of(spec);
  constexpr std::string_view kWhole = "dxXobc", kReal = "eEfFgG%";
  const auto is_one = [&](std::string_view types) { return types.find(form.type) != std::string_view::npos; };
  if (value.is_text()) {
    if ((form.type != 0 && form.type != 's') || form.sign != '-' || form.grouping || form.align == '=')
      refuse_form(fmt::format("'{}' of a text", spec));
    return padded(first_characters(value.text(), form.precision), form.width, form.align ? form.align : '<',
                  form.zeros ? "0" : form.fill);
  }
  if (!value.is_number()) refuse_form(fmt::format("'{}' of {}", spec, value.kind()));
  const bool whole = !value.is<double>();
  if (form.type != 0 && !is_one(kReal) && !(whole && is_one(kWhole))) refuse_form(fmt::format("'{}'", spec));
  if (whole && form.precision >= 0 && !is_one(kReal)) refuse_form("a precision of a whole number");
  if (value.is<bool>() && form.type == 0) refuse_form("a truth value without a type");
  const std::string text = form.type == 'c' ? character_of(value) : number_text(value, form);
  return padded(text, form.width, form.align && form.align != '=' ? form.align : '>', form.fill);
}

// Returns the value that a place names by a number or name, with attributes and items behind it.
Value value_of(std::string_view name, const Arguments& arguments, int64_t& counted) {
  const size_t end = std::min(name.find_first_of(".["), name.size());
  std::string_view first = name.substr(0, end), rest = name.substr(end);
  Value value;
  if (const bool digits = first.find_first_not_of("0123456789") == std::string_view::npos; digits) {
    const bool counts = first.empty();
    if (counts ? counted < 0 : counted > 0) refuse_form("places with numbers beside places without");
    const int64_t at = counts ? counted++ : read_number(first, 0);
    if (!counts) counted = -1;
    if (at + 1 >= static_cast<int64_t>(arguments.positional.size())) refuse_form("fewer values than places");
    value = base::at(arguments.positional, at + 1);
  } else {
    const Value* named = find(arguments.named, std::string(first));
    if (named == nullptr) refuse_form(fmt::format("no value of '{}'", first));
    value = *named;
  }
  while (!rest.empty()) {
    const bool item = take(rest) == '[';
    const size_t stop = std::min(item ? rest.find(']') : rest.find_first_of(".["), rest.size());
    std::string_view key = rest.substr(0, stop);
    rest.remove_prefix(std::min(stop + (item ? 1 : 0), rest.size()));
    const bool place = item && !key.empty() && key.find_first_not_of("0123456789") == std::string_view::npos;
    const std::string word(key);
    value = place ? item_of(value, Value(read_number(key, 0))) : item_of(value, Value(word));
    if (value.is<Undefined>()) refuse_form(fmt::format("no '{}'", word));
  }
  return value;
}

}  // namespace

std::string padded(const std::string& text, int64_t width, char align, const std::string& fill) {
  const int64_t missing = width - base::characters_in(text);
  if (missing <= 0) return text;
  expect_room(static_cast<size_t>(missing), fill.size());
  const int64_t left = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::string percent_format(const std::string& format, const Value& values) {
  GivenValues given(values);
  Pieces out;
  std::string_view rest = format;
  for (size_t at = rest.find('%'); at != std::string_view::npos; at = rest.find('%')) {
    out << rest.substr(0, at);
    rest.remove_prefix(at + 1);
    out << placed(rest, given);
  }
  out << rest;
  given.finish();
  return out.take();
}

std::string brace_format(const Arguments& arguments) {
  const std::string& format = arguments.of().text();
  int64_t counted = 0;
  Pieces out;
  for (std::string_view rest = format; !rest.empty();) {
    const char c = take(rest);
    if (c != '{' && c != '}') {
      out << c;
    } else if (rest.starts_with(c)) {
      out << take(rest);
    } else {
      const size_t end = rest.find('}');
      if (c == '}' || end == std::string_view::npos) refuse_form("a brace without the other");
      const std::string_view field = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      const size_t colon = std::min(field.find(':'), field.size()), mark = std::min(field.find('!'), colon);
      const Value value = value_of(field.substr(0, mark), arguments, counted);
      const std::string spec(field.substr(std::min(colon + 1, field.size())));
      if (spec.find('{') != std::string::npos) refuse_form("a place within a format");
      const std::string_view conversion = field.substr(mark, colon - mark);
      if (!conversion.empty() && conversion != "!s" && conversion != "!r") refuse_form(std::string(conversion));
      if (conversion.empty())
        out << formatted(value, spec);
      else
        out << formatted(conversion == "!r" ? Value(to_repr(value)) : Value(to_text(value)), spec);
    }
  }
  return out.take();
}

}  // namespace collimate::text::jinja
