#include "collimate/text/oniguruma/classes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <vector>

#include "collimate/text/oniguruma/folds.h"
#include "collimate/text/oniguruma/sets.h"

namespace collimate::text::oniguruma {
namespace {

constexpr int kMostClasses = 100;

// Joins `members`, as PCRE2 writes them between brackets, and `others`, expressions of one character each.
struct Union {
  std::string members;
  std::vector<std::string> others;

  void add(const CharacterSet& set) {
    if (set.negated) {
      others.push_back(set.expression());
    } else {
      members += set.members;
    }
  }

  std::string expression() const {
    std::vector<std::string> all = others;
    if (!members.empty()) all.insert(all.begin(), "[" + members + "]");
    if (all.empty()) return "(?!)";
    return all.size() == 1 ? all[0] : fmt::format("(?:{})", fmt::join(all, "|"));
  }

  std::string all_but() const {
    return others.empty() && !members.empty() ? "[^" + members + "]" : fmt::format("(?!{})(?s:.)", expression());
  }
};

struct Class {
  Union set;
  bool negated = false;
};

class ClassReader {
 public:
  explicit ClassReader(Reader& reader) : reader_(reader) {}

  Class read(int depth = 0) {
    if (depth > kMostClasses) reader_.refuse("more than 100 classes inside of each other", "fewer");
    Class out{.negated = reader_.take("^")};
    std::vector<std::string> operands;
    if (take_first_bracket()) out.set.members += "\\]";
    while (!reader_.take("]")) {
      if (reader_.take("&&")) {
        operands.push_back(fmt::format("(?={})", out.set.expression()));
        out.set = {};
      } else {
        read_item(out.set, depth);
      }
    }
    if (!operands.empty())
      out.set = {.members = "", .others = {fmt::format("(?:{}{})", fmt::join(operands, ""), out.set.expression())}};
    return out;
  }

 private:
  // Takes a "]" at the start, which is a member where another one ends the class.
  bool take_first_bracket() {
    return reader_.at("]") && reader_.rest().find(']', 1) != std::string_view::npos && reader_.take("]");
  }

  void read_item(Union& into, int depth) {
    if (const auto bracket = take_bracket(reader_)) return into.add(*bracket);
    if (reader_.take("[")) return unite(into, read(depth + 1));
    const bool escaped = reader_.take("\\");
    if (const auto set = escaped ? take_set(reader_, true) : std::nullopt) return into.add(*set);
    const uint32_t first = character(escaped);
    into.members += literal(first);
    if (!reader_.at("-") || reader_.at("-]") || reader_.at("-&&")) return;
    reader_.take("-");
    into.members += "-";
    into.members += literal(last_of_range(first));
  }

  uint32_t last_of_range(uint32_t first) {
    if (reader_.at("[")) reader_.refuse("ranges that end in a class (-[)", "\\-");
    const bool escaped = reader_.take("\\");
    if (escaped && take_set(reader_, true)) reader_.refuse("ranges that end in a class", "\\-");
    const uint32_t last = character(escaped);
    if (last < first) reader_.refuse("ranges that end before they begin", "its ends the other way round");
    return last;
  }

  uint32_t character(bool escaped) {
    if (!escaped) return reader_.take_character();
    if (reader_.take("b")) return '\b';
    const auto code_point = reader_.take_escaped(true);
    return code_point ? *code_point : reader_.take_character();
  }

  static void unite(Union& into, const Class& inner) {
    if (inner.negated) return into.others.push_back("(?:" + inner.set.all_but() + ")");
    into.members += inner.set.members;
    into.others.insert(into.others.end(), inner.set.others.begin(), inner.set.others.end());
  }

  Reader& reader_;
};

}  // namespace

std::string take_class(Reader& reader, bool ignore_case) {
  auto [set, negated] = ClassReader(reader).read();
  const OtherCases other = ignore_case ? other_cases(set.expression()) : OtherCases{};
  set.members += other.members;
  const std::string one = negated ? set.all_but() : set.expression();
  if (!ignore_case) return negated && !one.starts_with('[') ? "(?:" + one + ")" : one;
  const std::string texts = negated || other.texts.empty() ? "" : fmt::format("|{}", fmt::join(other.texts, "|"));
  return fmt::format("(?-i:{}{})", one, texts);
}

}  // namespace collimate::text::oniguruma
