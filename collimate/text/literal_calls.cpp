#include "collimate/text/literal_calls.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "collimate/base/json.h"
#include "collimate/base/stripped.h"
#include "collimate/text/argument_value.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using Value = std::optional<std::string>;  // JSON; nothing where there is none

std::string json_of_text(std::string_view text) { return nlohmann::ordered_json(std::string(text)).dump(); }

// Collects the members of an object in their order; of those with one name the last stays.
class Members {
 public:
  void set(std::string name, std::string value) {
    const auto one = std::ranges::find(all_, name, &std::pair<std::string, std::string>::first);
    if (one == all_.end())
      all_.emplace_back(std::move(name), std::move(value));
    else
      one->second = std::move(value);
  }
  std::string json() const {
    std::string out = "{";
    for (const auto& [name, value] : all_) {
      if (out.size() > 1) out += ',';
      out += json_of_text(name);
      out += ':';
      out += value;
    }
    out += '}';
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

// Reads a text from its beginning, blanks between its parts left out.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(base::stripped(text)) {}
  virtual ~Reader() = default;

  bool empty() const { return rest_.empty(); }
  bool skip(std::string_view mark) {
    if (!rest_.starts_with(mark)) return false;
    pass(mark.size());
    return true;
  }
  // Takes the text before one of the characters, which stays.
  std::string_view until(const char* ends) {
    const std::string_view before = rest_.substr(0, rest_.find_first_of(ends));
    pass(before.size());
    return base::stripped(before);
  }
  Value value(int depth = 0) {
    if (depth > base::kMaxJsonDepth) return std::nullopt;
    if (skip("[")) return list(depth);
    if (skip("{")) return object(depth);
    if (Value text = this->text()) return json_of_text(*text);
    return bare(until(",]}) \t\r\n"));
  }
  // Reads an object from behind its opening bracket.
  Value object(int depth) {
    Members members;
    for (bool first = true; !skip("}"); first = false) {
      if (!first && !skip(",")) return std::nullopt;
      Value key = text();
      if (!key) key = std::string(until(":}"));
      if (!skip(":")) return std::nullopt;
      const Value one = value(depth + 1);
      if (!one) return std::nullopt;
      members.set(*key, *one);
    }
    return members.json();
  }

 protected:
  // Reads a text in quotes and gives what it says; nothing where none begins or it does not end.
  virtual Value text() = 0;
  // Returns the JSON of a word without quotes.
  virtual Value bare(std::string_view word) const = 0;
  std::string_view rest() const { return rest_; }
  void pass(size_t size) { rest_ = base::stripped(rest_.substr(size)); }

 private:
  Value list(int depth) {
    std::string out = "[";
    for (bool first = true; !skip("]"); first = false) {
      if (!first && !skip(",")) return std::nullopt;
      const Value one = value(depth + 1);
      if (!one) return std::nullopt;
      if (!first) out += ',';
      out += *one;
    }
    out += ']';
    return out;
  }

  std::string_view rest_;
};

class GemmaReader : public Reader {
 public:
  using Reader::Reader;

 private:
  Value text() override {
    if (!rest().starts_with(kGemmaQuote)) return std::nullopt;
    const size_t end = rest().find(kGemmaQuote, kGemmaQuote.size());
    if (end == std::string_view::npos) return std::nullopt;
    std::string said(rest().substr(kGemmaQuote.size(), end - kGemmaQuote.size()));
    pass(end + kGemmaQuote.size());
    return said;
  }
  Value bare(std::string_view word) const override {
    if (word.empty() || word.find(kGemmaQuote) != std::string_view::npos) return std::nullopt;
    const Value json = json_text(word);
    return json ? json : json_of_text(word);
  }
};

class PythonReader : public Reader {
 public:
  using Reader::Reader;

 private:
  Value text() override {
    const char quote = rest().empty() ? '\0' : rest().front();
    if (quote != '\'' && quote != '"') return std::nullopt;
    std::string said;
    for (size_t at = 1; at < rest().size(); ++at) {
      if (rest()[at] == quote) {
        pass(at + 1);
        return said;
      }
      if (rest()[at] == '\\')
        at += escape(rest().substr(at + 1), said);
      else
        said += rest()[at];
    }
    return std::nullopt;
  }

  // Adds what stands behind a backslash, and returns its length. The backslash is kept where Python has no such escape.
  static size_t escape(std::string_view behind, std::string& out) {
    constexpr std::string_view kNamed = "nrtbfva\\'\"", kMeant = "\n\r\t\b\f\v\a\\'\"";
    if (behind.empty()) return 0;
    if (const size_t named = kNamed.find(behind[0]); named != std::string_view::npos) {
      out += kMeant[named];
      return 1;
    }
    const size_t digits = behind[0] == 'x' ? 2 : behind[0] == 'u' ? 4 : behind[0] == 'U' ? 8 : 0;
    const std::string_view hex = behind.substr(1, digits);
    const bool whole =
        digits > 0 && hex.size() == digits && hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    const uint64_t code = whole ? std::stoull(std::string(hex), nullptr, 16) : 0;
    if (!whole || code > 0x10FFFF) {
      out += '\\';
      return 0;
    }
    append_utf8(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : static_cast<uint32_t>(code));
    return 1 + digits;
  }

  Value bare(std::string_view word) const override {
    for (const auto& [python, json] : {std::pair("True", "true"), {"False", "false"}, {"None", "null"}})
      if (word == python) return json;
    return json_text(word);
  }
};

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  });
}

// Reads one call.
std::optional<ToolCall> python_call(PythonReader& reader) {
  const std::string_view name = reader.until("(");
  if (!is_name(name) || !reader.skip("(")) return std::nullopt;
  Members arguments;
  for (bool first = true; !reader.skip(")"); first = false) {
    if (!first && !reader.skip(",")) return std::nullopt;
    const std::string_view key = reader.until("=,)");
    if (!is_name(key) || !reader.skip("=")) return std::nullopt;
    const Value value = reader.value();
    if (!value) return std::nullopt;
    arguments.set(std::string(key), *value);
  }
  return ToolCall{std::string(name), arguments.json()};
}

}  // namespace

std::vector<ToolCall> python_calls(std::string_view text) {
  PythonReader reader(text);
  if (!reader.skip("[")) return {};
  std::vector<ToolCall> calls;
  while (!reader.skip("]")) {
    if (!calls.empty() && !reader.skip(",")) return {};
    std::optional<ToolCall> call = python_call(reader);
    if (!call) return {};
    calls.push_back(std::move(*call));
  }
  return reader.empty() ? calls : std::vector<ToolCall>();
}

std::vector<ToolCall> gemma_call(std::string_view text) {
  GemmaReader reader(text);
  if (!reader.skip("call:")) return {};
  const std::string_view name = reader.until("{");
  if (!is_name(name) || !reader.skip("{")) return {};
  const Value arguments = reader.object(0);
  if (!arguments || !reader.empty()) return {};
  return {{std::string(name), *arguments}};
}

}  // namespace collimate::text
