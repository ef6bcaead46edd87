#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace collimate::text::jinja {

class Value;
struct Node;
struct Scope;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<Value, Value>>;  // in the order in which keys came
using Named = std::vector<std::pair<std::string, Value>>;

struct Undefined {
  std::string name;  // the name that was looked up, for errors
};
struct None {};
// A namespace: the one thing that templates may change.
struct Namespace {
  Named members;
};
// A macro, or the body of a call block, which sees the variables where it stands.
struct Macro {
  const Node* node = nullptr;
  Scope* scope = nullptr;  // null: the scope of the whole template
};
// One of the functions that templates have, by its name.
struct Function {
  std::string name;
};
// A Loop says where a for loop stands.
struct Loop {
  int64_t index = 0, depth = 0;
  std::shared_ptr<const List> items;
  const Node* node = nullptr;       // of a loop that is recursive
  std::shared_ptr<List> last = {};  // what loop.changed() was given last
};
// Gives its items in turn: all of them in a cycle, or, for a joiner, nothing at first and then its one item.
struct Turns {
  List items;
  size_t at = 0;
  bool joins = false;
};

// A value of the template language, which is Python's as far as templates see it. Texts, lists and dictionaries are
// shared, as nothing changes them; making one is charged to the budget. Throws InputError for more than 200 levels of
// lists.
class Value {
 public:
  using Held = std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const std::string>,
                            std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, Macro,
                            Function, Loop, std::shared_ptr<Turns>>;

  Value() = default;
  template <class T>
  Value(T held) : held_(std::move(held)) {}  // NOLINT(google-explicit-constructor): a Value is any of them
  Value(std::string text);
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(int number) : held_(int64_t{number}) {}
  Value(List items);
  Value(Dict members);
  static Value tuple(List items);
  // Makes a tuple whose parts have the names grouper and list too.
  static Value group(Value grouper, List items);
  // Makes a text that is markup already (Markup of MarkupSafe), so that it is not escaped again.
  static Value markup(std::string text);

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(held_);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(held_);
  }
  bool is_list() const { return is<std::shared_ptr<const List>>(); }  // true for a tuple too
  bool is_tuple() const { return is_list() && special_ != Special::kNone; }
  bool is_group() const { return special_ == Special::kGroup; }
  bool is_markup() const { return special_ == Special::kMarkup; }
  bool is_dict() const { return is<std::shared_ptr<const Dict>>(); }
  bool is_number() const { return is<int64_t>() || is<double>() || is<bool>(); }
  bool is_text() const { return is<std::shared_ptr<const std::string>>(); }
  const List& list() const { return *shared_list(); }
  const std::shared_ptr<const List>& shared_list() const { return as<std::shared_ptr<const List>>(); }
  const Dict& dict() const { return *as<std::shared_ptr<const Dict>>(); }
  const std::string& text() const { return *as<std::shared_ptr<const std::string>>(); }
  double real() const;       // of a number
  int64_t whole() const;     // of a whole number or truth value
  const char* kind() const;  // a word for errors

 private:
  enum class Special : uint8_t { kNone, kTuple, kGroup, kMarkup };
  void contain(const Value& item);

  Held held_;
  Special special_ = Special::kNone;
  int levels_ = 0;  // of lists and dictionaries in each other
};

// Throws InputError for a whole number beyond 64 bits with a sign.
Value from_json(const nlohmann::ordered_json& json);
bool truth(const Value& value);
// Returns whether Python takes the value as a key: no list and no dictionary, but a tuple of keys.
bool is_key(const Value& value);
bool equal(const Value& a, const Value& b);
// Returns a < b as Python orders numbers, texts and lists. Throws InputError for others.
bool less(const Value& a, const Value& b);
// Returns `a <sign> b` for a sign of == != < <= > >=.
bool compare(const std::string& sign, const Value& a, const Value& b);
// These return what str() and repr() of Python return.
std::string to_text(const Value& value);
std::string to_repr(const Value& value);
// These return the member of that name or key, or null.
const Value* find(const Named& members, const std::string& name);
const Value* find(const Dict& dict, const Value& key);
const Value* find(const Dict& dict, const std::string& key);

// Says how JSON is written, as by json.dumps: in one line without an `indent`, which is written once a level.
struct JsonFormat {
  std::optional<std::string> indent = {};
  bool ascii = false, sort_keys = false;
  std::string item = ", ", key = ": ";
};
std::string to_json(const Value& value, const JsonFormat& format);

// Returns the characters of UTF-8; a byte that begins none is one of its own.
std::vector<std::string_view> characters(const std::string& text);

// Throws InputError for the template; the evaluator adds the line.
[[noreturn]] void refuse(const std::string& expected, const std::string& got);

}  // namespace collimate::text::jinja
