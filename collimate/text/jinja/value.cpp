#include "collimate/text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"

namespace collimate::text::jinja {
namespace {

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char shortest[32];
  const auto end = std::to_chars(shortest, shortest + sizeof(shortest), value).ptr;
  std::string text(shortest, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      if (c == quote || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + quote;
}

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Writes nested JSON.
class JsonWriter {
 public:
  explicit JsonWriter(const JsonFormat& format) : format_(format) {}

  void write(const Value& value, int64_t depth) {
    if (depth > 100) refuse("JSON of at most 100 levels", "more");
    if (value.is_text()) {
      out += json_text(value.text());
    } else if (value.is_list()) {
      begin('[', value.list().size(), depth);
      for (size_t i = 0; i < value.list().size(); ++i) {
        separate(i, depth);
        write(value.list()[i], depth + 1);
      }
      end(']', value.list().size(), depth);
    } else if (value.is_dict()) {
      write_dict(value.dict(), depth);
    } else if (value.is<bool>()) {
      out += value.as<bool>() ? "true" : "false";
    } else if (value.is<None>()) {
      out += "null";
    } else if (value.is_number()) {
      out += to_text(value);
    } else {
      refuse("something that JSON has", value.kind());
    }
  }

  std::string out;

 private:
  void write_dict(Dict dict, int64_t depth) {
    if (format_.sort_keys)
      std::sort(dict.begin(), dict.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    begin('{', dict.size(), depth);
    for (size_t i = 0; i < dict.size(); ++i) {
      separate(i, depth);
      out += json_text(dict[i].first) + format_.key;
      write(dict[i].second, depth + 1);
    }
    end('}', dict.size(), depth);
  }
  void line(int64_t depth) { out.append("\n").append(static_cast<size_t>(format_.indent * depth), ' '); }
  void begin(char bracket, size_t count, int64_t depth) {
    out += bracket;
    if (count > 0 && format_.indent >= 0) line(depth + 1);
  }
  void separate(size_t i, int64_t depth) {
    if (i == 0) return;
    if (format_.indent < 0) {
      out += format_.item;
    } else {
      out += ',';
      line(depth + 1);
    }
  }
  void end(char bracket, size_t count, int64_t depth) {
    if (count > 0 && format_.indent >= 0) line(depth);
    out += bracket;
  }

  const JsonFormat& format_;
};

template <class Items, class Each>
std::string listed(const Items& items, const Each& each) {
  std::string out;
  for (const auto& item : items) out.append(out.empty() ? "" : ", ").append(each(item));
  return out;
}

}  // namespace

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
      "nothing of that name", "none",        "a truth value", "a number",   "a number", "a text", "a list",
      "a dictionary",         "a namespace", "a macro",       "a function", "a loop"};
  return kKinds[held_.index()];
}

Value from_json(const nlohmann::ordered_json& json) {
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
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

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.real() == b.real();
  if (a.is_text() && b.is_text()) return a.text() == b.text();
  if (a.is_list() && b.is_list())
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
  if (a.is_number() && b.is_number()) return a.real() < b.real();
  if (a.is_text() && b.is_text()) return a.text() < b.text();
  if (a.is_list() && b.is_list())
    return std::lexicographical_compare(a.list().begin(), a.list().end(), b.list().begin(), b.list().end(), less);
  refuse("two numbers, texts or lists to compare", fmt::format("{} and {}", a.kind(), b.kind()));
}

std::string to_text(const Value& value) {
  if (value.is_text()) return value.text();
  if (value.is<Undefined>()) return "";
  return to_repr(value);
}

std::string to_repr(const Value& value) {
  if (value.is_text()) return quoted(value.text());
  if (value.is<None>()) return "None";
  if (value.is<bool>()) return value.as<bool>() ? "True" : "False";
  if (value.is<int64_t>()) return std::to_string(value.as<int64_t>());
  if (value.is<double>()) return real_text(value.as<double>());
  if (value.is_list()) return fmt::format("[{}]", listed(value.list(), to_repr));
  if (value.is_dict()) {
    const auto member = [](const auto& m) { return fmt::format("{}: {}", quoted(m.first), to_repr(m.second)); };
    return fmt::format("{{{}}}", listed(value.dict(), member));
  }
  refuse("a value that has a text", value.kind());
}

const Value* find(const Dict& dict, const std::string& key) {
  for (const auto& [name, value] : dict)
    if (name == key) return &value;
  return nullptr;
}

std::string to_json(const Value& value, const JsonFormat& format) {
  JsonWriter writer(format);
  writer.write(value, 0);
  return std::move(writer.out);
}

std::vector<std::string> characters(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) {
    if (!base::begins_character(c) && !out.empty() && out.back().size() < 4) {
      out.back() += c;
    } else {
      out.emplace_back(1, c);
    }
  }
  return out;
}

void refuse(const std::string& expected, const std::string& got) {
  throw base::InputError(base::expectation("chat template", expected, got));
}

}  // namespace collimate::text::jinja
