#include "collimate/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/text/jinja/budget.h"

namespace collimate::text::jinja {
namespace {

// Returns repr() of a float: the fewest digits that read as it, with an exponent below 1e-4 and from 1e16 on.
std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const bool plain = value == 0 || (std::abs(value) >= 1e-4 && std::abs(value) < 1e16);
  const auto form = plain ? std::chars_format::fixed : std::chars_format::scientific;
  char shortest[32];
  const auto end = std::to_chars(shortest, shortest + sizeof(shortest), value, form).ptr;
  std::string text(shortest, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void write_quoted(const std::string& text, Pieces& out) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  out << quote;
  for (const char c : text) {
    if (c == '\n') {
      out << "\\n";
    } else if (c == '\r') {
      out << "\\r";
    } else if (c == '\t') {
      out << "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out << fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      if (c == quote || c == '\\') out << '\\';
      out << c;
    }
  }
  out << quote;
}

void write_repr(const Value& value, Pieces& out) {
  charge(kItemCost);
  const char* between = "";
  if (value.is_text()) {
    write_quoted(value.text(), out);
  } else if (value.is<Undefined>()) {
    out << "Undefined";
  } else if (value.is<None>()) {
    out << "None";
  } else if (value.is<bool>()) {
    out << (value.as<bool>() ? "True" : "False");
  } else if (value.is<int64_t>()) {
    out << std::to_string(value.as<int64_t>());
  } else if (value.is<double>()) {
    out << real_text(value.as<double>());
  } else if (value.is_list()) {
    out << (value.is_tuple() ? '(' : '[');
    for (const Value& item : value.list()) write_repr(item, out << std::exchange(between, ", "));
    out << (!value.is_tuple() ? "]" : value.list().size() == 1 ? ",)" : ")");
  } else if (value.is_dict()) {
    out << '{';
    for (const auto& [key, member] : value.dict()) {
      write_repr(key, out << std::exchange(between, ", "));
      write_repr(member, out << ": ");
    }
    out << '}';
  } else {
    refuse("a value that has a text", value.kind());
  }
}

std::string json_text(const std::string& text, bool ascii) {
  charge(6 * text.size());  // \u0001 takes six bytes
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

// Returns JSON's word for none, a truth value or a number.
std::string json_word(const Value& value) {
  if (value.is<bool>()) return value.as<bool>() ? "true" : "false";
  if (value.is<None>()) return "null";
  if (value.is<double>() && std::isnan(value.real())) return "NaN";
  if (value.is<double>() && std::isinf(value.real())) return value.real() > 0 ? "Infinity" : "-Infinity";
  if (value.is_number()) return to_repr(value);
  refuse("something that JSON has", value.kind());
}

// Writes nested JSON.
class JsonWriter {
 public:
  explicit JsonWriter(const JsonFormat& format) : format_(format) {}

  void write(const Value& value, int64_t depth) {
    charge(kItemCost);
    if (value.is_text()) {
      out << json_text(value.text(), format_.ascii);
    } else if (value.is_list()) {
      begin('[', value.list().size(), depth);
      for (size_t i = 0; i < value.list().size(); ++i) {
        separate(i, depth);
        write(value.list()[i], depth + 1);
      }
      end(']', value.list().size(), depth);
    } else if (value.is_dict()) {
      write_dict(value.dict(), depth);
    } else {
      out << json_word(value);
    }
  }

  Pieces out;

 private:
  void write_dict(Dict dict, int64_t depth) {
    if (format_.sort_keys)
      std::sort(dict.begin(), dict.end(), [](const auto& a, const auto& b) { return less(a.first, b.first); });
    begin('{', dict.size(), depth);
    for (size_t i = 0; i < dict.size(); ++i) {
      separate(i, depth);
      const Value& key = dict[i].first;
      out << json_text(key.is_text() ? key.text() : json_word(key), format_.ascii) << format_.key;
      write(dict[i].second, depth + 1);
    }
    end('}', dict.size(), depth);
  }
  void line(int64_t depth) {
    if (!format_.indent) return;
    out << '\n';
    for (int64_t i = 0; i < depth; ++i) out << *format_.indent;
  }
  void begin(char bracket, size_t count, int64_t depth) {
    out << bracket;
    if (count > 0) line(depth + 1);
  }
  void separate(size_t i, int64_t depth) {
    if (i == 0) return;
    out << format_.item;
    line(depth + 1);
  }
  void end(char bracket, size_t count, int64_t depth) {
    if (count > 0) line(depth);
    out << bracket;
  }

  const JsonFormat& format_;
};

// Returns a number, whole ones of 64 bits without rounding.
long double exact(const Value& number) {
  static_assert(std::numeric_limits<long double>::digits >= 63);
  return number.is<double>() ? number.as<double>() : static_cast<long double>(number.whole());
}

// A text takes so many bytes beside its own.
constexpr size_t kTextCost = 64;

}  // namespace

Value::Value(std::string text) {
  charge(kTextCost + text.size());
  held_ = std::make_shared<const std::string>(std::move(text));
}

Value::Value(List items) {
  charge(items.size() * sizeof(Value));
  for (const Value& item : items) contain(item);
  held_ = std::make_shared<const List>(std::move(items));
}

Value Value::tuple(List items) {
  Value made(std::move(items));
  made.special_ = Special::kTuple;
  return made;
}
Value Value::group(Value grouper, List items) {
  Value made = tuple({std::move(grouper), Value(std::move(items))});
  made.special_ = Special::kGroup;
  return made;
}
Value Value::markup(std::string text) {
  Value made(std::move(text));
  made.special_ = Special::kMarkup;
  return made;
}

Value::Value(Dict members) {
  charge(members.size() * 2 * sizeof(Value));
  for (const auto& [key, member] : members) contain(member);
  held_ = std::make_shared<const Dict>(std::move(members));
}

void Value::contain(const Value& item) {
  levels_ = std::max(levels_, item.levels_ + 1);
  if (levels_ > kMostLevels) refuse(fmt::format("lists of at most {} levels", kMostLevels), "more");
}

double Value::real() const {
  if (is<double>()) return as<double>();
  return static_cast<double>(whole());
}

int64_t Value::whole() const {
  if (is<bool>()) return as<bool>() ? 1 : 0;
  if (!is<int64_t>()) refuse("a whole number", kind());
  return as<int64_t>();
}

const char* Value::kind() const {
  static constexpr const char* kKinds[] = {
      "nothing of that name", "none",        "a truth value", "a number",   "a number", "a text",  "a list",
      "a dictionary",         "a namespace", "a macro",       "a function", "a loop",   "a cycler"};
  return kKinds[held_.index()];
}

Value from_json(const nlohmann::ordered_json& json) {
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() && json.get<uint64_t>() > std::numeric_limits<int64_t>::max())
    refuse("whole numbers up to 9223372036854775807", fmt::to_string(json.get<uint64_t>()));
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    List items;
    for (const auto& item : json) items.push_back(from_json(item));
    return items;
  }
  Dict members;
  for (const auto& [key, member] : json.items()) members.emplace_back(key, from_json(member));
  return members;
}

bool truth(const Value& value) {
  if (value.is<bool>()) return value.as<bool>();
  if (value.is<int64_t>()) return value.as<int64_t>() != 0;
  if (value.is<double>()) return value.as<double>() != 0;
  if (value.is_text()) return !value.text().empty();
  if (value.is_list()) return !value.list().empty();
  if (value.is_dict()) return !value.dict().empty();
  return !value.is<Undefined>() && !value.is<None>();
}

bool is_key(const Value& value) {
  if (!value.is_list()) return !value.is_dict();
  charge(value.list().size());
  return value.is_tuple() && std::ranges::all_of(value.list(), is_key);
}

bool equal(const Value& a, const Value& b) {
  charge(kItemCost);
  if (a.is_number() && b.is_number()) return exact(a) == exact(b);
  if (a.is_text() && b.is_text()) {
    if (a.text().size() == b.text().size()) charge(a.text().size());
    return a.text() == b.text();
  }
  if (a.is_list() && b.is_list() && a.is_tuple() == b.is_tuple())
    return std::equal(a.list().begin(), a.list().end(), b.list().begin(), b.list().end(), equal);
  if (a.is_dict() && b.is_dict()) {
    if (a.dict().size() != b.dict().size()) return false;
    return std::all_of(a.dict().begin(), a.dict().end(), [&](const auto& member) {
      const Value* other = find(b.dict(), member.first);
      return other != nullptr && equal(member.second, *other);
    });
  }
  return (a.is<None>() && b.is<None>()) || (a.is<Undefined>() && b.is<Undefined>());
}

bool less(const Value& a, const Value& b) {
  charge(kItemCost);
  if (a.is_number() && b.is_number()) return exact(a) < exact(b);
  if (a.is_text() && b.is_text()) {
    charge(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();
  }
  if (a.is_list() && b.is_list() && a.is_tuple() == b.is_tuple())
    return std::lexicographical_compare(a.list().begin(), a.list().end(), b.list().begin(), b.list().end(), less);
  refuse("two numbers, texts or lists to compare", fmt::format("{} and {}", a.kind(), b.kind()));
}

bool compare(const std::string& sign, const Value& a, const Value& b) {
  if (sign == "==") return equal(a, b);
  if (sign == "!=") return !equal(a, b);
  if (sign == "<") return less(a, b);
  if (sign == ">") return less(b, a);
  return sign == "<=" ? less(a, b) || equal(a, b) : less(b, a) || equal(a, b);
}

std::string to_text(const Value& value) {
  if (value.is<Undefined>()) return "";
  if (!value.is_text()) return to_repr(value);
  charge(value.text().size());
  return value.text();
}

std::string to_repr(const Value& value) {
  Pieces out;
  write_repr(value, out);
  return out.take();
}

const Value* find(const Named& members, const std::string& name) {
  charge(members.size());
  const auto found = std::ranges::find(members, name, &Named::value_type::first);
  return found == members.end() ? nullptr : &found->second;
}

const Value* find(const Dict& dict, const Value& key) {
  if (key.is_text()) return find(dict, key.text());
  const auto found = std::ranges::find_if(dict, [&](const auto& member) { return equal(member.first, key); });
  return found == dict.end() ? nullptr : &found->second;
}

const Value* find(const Dict& dict, const std::string& key) {
  charge(dict.size());
  const auto is_it = [&](const auto& member) { return member.first.is_text() && member.first.text() == key; };
  const auto found = std::ranges::find_if(dict, is_it);
  return found == dict.end() ? nullptr : &found->second;
}

std::string to_json(const Value& value, const JsonFormat& format) {
  JsonWriter writer(format);
  writer.write(value, 0);
  return writer.out.take();
}

std::vector<std::string_view> characters(const std::string& text) {
  charge(text.size() * sizeof(std::string_view));
  std::vector<std::string_view> out;
  out.reserve(text.size());
  for (size_t begin = 0, at = 1; begin < text.size(); ++at) {
    if (at < text.size() && at - begin < 4 && !base::begins_character(text[at])) continue;
    out.emplace_back(text.data() + begin, at - begin);
    begin = at;
  }
  return out;
}

void refuse(const std::string& expected, const std::string& got) {
  throw base::InputError(base::expectation("chat template", expected, got));
}

}  // namespace collimate::text::jinja
