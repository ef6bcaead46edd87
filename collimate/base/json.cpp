#include "collimate/base/json.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::base {
namespace {

std::string place(std::string_view text, size_t offset, const std::string& where, int64_t first_line) {
  if (first_line == 0) return where;
  const std::string_view before = text.substr(0, offset);
  return fmt::format("{}:{}", where, first_line + std::count(before.begin(), before.end(), '\n'));
}

// A Scan looks once at brackets and strings to find what the parser would accept though it is not allowed. It leaves
// text that is no JSON to the parser.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {
    for (size_t i = 0; i < text.size() && too_deep_ == npos; ++i) {
      const char c = text[i];
      if (c == '"')
        i = read_string(i);
      else if (c == '{' || c == '[')
        open(i);
      else if (c == '}' || c == ']')
        close();
    }
  }

  static constexpr size_t npos = std::string_view::npos;
  // Returns the offset of the bracket that opens the first level too many, or npos.
  size_t too_deep() const { return too_deep_; }
  // Returns the offset of the first key that its object already has, or npos; key() returns that key without escapes.
  size_t again() const { return again_.at; }
  std::string_view key() const { return again_.written; }
  // Returns the largest number of keys that an object has.
  size_t most_keys() const { return most_keys_; }

 private:
  struct Key {
    std::string_view written;
    size_t at = npos;
  };

  // Returns the offset of the closing quote.
  size_t read_string(size_t begin) {
    size_t end = begin;
    bool escaped = true;
    while (escaped) {
      end = text_.find('"', end + 1);
      if (end == npos) return text_.size();
      escaped = (end - 1 - text_.find_last_not_of('\\', end - 1)) % 2 == 1;
    }
    if (!levels_.empty()) note_key({text_.substr(begin + 1, end - begin - 1), begin}, end);
    return end;
  }

  void note_key(Key key, size_t end) {
    const size_t next = text_.find_first_not_of(" \t\r\n", end + 1);
    if (next == npos || text_[next] != ':') return;
    if (key.written.find('\\') != npos) {
      const auto plain = nlohmann::json::parse(text_.substr(key.at, end + 1 - key.at), nullptr, false);
      if (plain.is_string()) key.written = plain_.emplace_back(plain.get<std::string>());
    }
    keys_.push_back(key);
  }

  void open(size_t at) {
    if (levels_.size() == kMaxJsonDepth) too_deep_ = at;
    levels_.push_back(keys_.size());
  }

  void close() {
    if (levels_.empty()) return;
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(levels_.back());
    levels_.pop_back();
    most_keys_ = std::max(most_keys_, static_cast<size_t>(keys_.end() - begin));
    if (again_.at == npos) compare(begin, keys_.end());
    keys_.erase(begin, keys_.end());
  }

  using Keys = std::vector<Key>::iterator;
  void compare(Keys begin, Keys end) {
    constexpr std::ptrdiff_t kFew = 16;
    if (end - begin <= kFew) {
      for (Keys key = begin; key != end && again_.at == npos; ++key)
        if (std::any_of(begin, key, [&](const Key& before) { return before.written == key->written; })) again_ = *key;
      return;
    }
    std::unordered_set<std::string_view> seen(static_cast<size_t>(end - begin));
    for (Keys key = begin; key != end && again_.at == npos; ++key)
      if (!seen.insert(key->written).second) again_ = *key;
  }

  std::string_view text_;
  std::vector<size_t> levels_;     // of the open levels: where their keys begin
  std::vector<Key> keys_;          // of the objects that are open
  std::deque<std::string> plain_;  // keys that are written with escapes
  size_t too_deep_ = npos, most_keys_ = 0;
  Key again_;
};

// Returns what is missing by the parser's message, such as " than \":\"". For a list or an object the parser names only
// the end, so the comma is added.
std::string missing_of(std::string_view message) {
  constexpr std::pair<std::string_view, const char*> kWords[] = {{"expected ':'", " than \":\""},
                                                                 {"expected '}'", " than \",\" or \"}\""},
                                                                 {"expected ']'", " than \",\" or \"]\""},
                                                                 {"expected string literal", " than a name in quotes"},
                                                                 {"expected end of input", " behind the end"}};
  for (const auto& [ending, words] : kWords)
    if (message.ends_with(ending)) return words;
  return "";
}

// Returns a part of a text as it is written, with bytes that are no characters replaced.
std::string as_written(std::string_view part) {
  std::string text = nlohmann::json(std::string(part)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text = text.substr(1, text.size() - 2);
  for (size_t at = 0; (at = text.find('\\', at)) != std::string::npos; ++at)
    if (at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\')) text.erase(at, 1);
  return text;
}

// Describes the place where the text stops being JSON. `byte` is the parser's count of bytes, 0 where it has none, and
// `missing` is what missing_of returned.
std::string found_at(std::string_view text, size_t byte, const std::string& missing) {
  constexpr size_t kShownBytes = 20;
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  if (byte == 0) return "a number that is too large";
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "an empty text";
  if (byte > text.size()) return "a text that ends before its value does";
  const size_t newline = text.rfind('\n', byte - 1);
  const size_t begin = newline == std::string_view::npos || newline + 1 > byte - 1 ? 0 : newline + 1;
  const size_t shown = byte - begin > kShownBytes ? byte - kShownBytes : begin;
  if (byte - begin == 1) {
    const std::string line(text.substr(begin, std::min(kShownBytes, text.find_first_of("\r\n", begin) - begin)));
    return fmt::format("{} at the beginning", nlohmann::json(line).dump(-1, ' ', false, kReplace));
  }
  return fmt::format("something else{} at column {}: {}{}", missing, byte - begin, shown > begin ? "…" : "",
                     as_written(text.substr(shown, byte - shown)));
}

// Returns the remedy for a common mistake, or "" for others. `at` is the number of bytes up to and including the one
// that was not expected.
std::string remedy_at(std::string_view text, size_t at) {
  if (at == 0 || at > text.size()) return "";
  const auto found = static_cast<unsigned char>(text[at - 1]);
  const size_t before = at < 2 ? std::string_view::npos : text.find_last_not_of(" \t\r\n", at - 2);
  constexpr const char* kUtf8 = "UTF-8: iconv -f LATIN1 -t UTF-8 converts an older file";
  if (found == '\'') return "double quotes in place of single ones";
  if (found == ',' && text.find_first_not_of(" \t\r\n", at) == std::string_view::npos) return "no comma at the end";
  if (at > 1 && static_cast<unsigned char>(text[at - 2]) >= 0xC0) return kUtf8;  // it begins a longer character
  if ((found == '}' || found == ']') && before != std::string_view::npos && text[before] == ',')
    return "no comma behind the last one";
  if (found == 'N' || found == 'I') return "null in place of a number that JSON lacks, as NaN";
  if (found == 'T' || found == 'F') return "true and false in small letters";
  if (found < 0x20) return "an escape, as \\t or \\n, for a control character in a text";
  if (found >= 0x80) return kUtf8;
  return "";
}

template <class Json>
Json parse(std::string_view text, const std::string& where, int64_t first_line) {
  const Scan scan(text);
  if (scan.too_deep() != Scan::npos)
    throw InputError(expectation(place(text, scan.too_deep(), where, first_line),
                                 fmt::format("JSON of at most {} levels", kMaxJsonDepth), "deeper nesting"));
  // An ordered object searches its keys one by one.
  constexpr size_t kMostOrderedKeys = 10'000;
  if (std::is_same_v<Json, nlohmann::ordered_json> && scan.most_keys() > kMostOrderedKeys)
    throw InputError(expectation(place(text, 0, where, first_line),
                                 fmt::format("at most {} keys in an object", kMostOrderedKeys),
                                 std::to_string(scan.most_keys())));
  Json parsed;
  try {
    parsed = Json::parse(text);
  } catch (const typename Json::exception& error) {
    const auto* parse_error = dynamic_cast<const typename Json::parse_error*>(&error);
    const size_t at = parse_error == nullptr ? 0 : parse_error->byte;
    throw InputError(expectation(place(text, at, where, first_line), "well-formed JSON",
                                 found_at(text, at, missing_of(error.what())), remedy_at(text, at)));
  }
  if (scan.again() != Scan::npos)
    throw InputError(expectation(place(text, scan.again(), where, first_line), "each key once in an object",
                                 fmt::format("\"{}\" again", scan.key()), "one of the two"));
  return parsed;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where, int64_t first_line) {
  return parse<nlohmann::json>(text, where, first_line);
}
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where, int64_t first_line) {
  return parse<nlohmann::ordered_json>(text, where, first_line);
}

}  // namespace collimate::base
