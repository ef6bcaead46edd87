#include "collimate/text/oniguruma/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collimate/text/oniguruma/classes.h"
#include "collimate/text/oniguruma/folds.h"
#include "collimate/text/oniguruma/reader.h"
#include "collimate/text/oniguruma/sets.h"
#include "collimate/text/regex.h"

namespace collimate::text::oniguruma {
namespace {

constexpr int kMostGroups = 200;  // PCRE2 takes 250
constexpr std::string_view kDigits = "0123456789";

struct Options {
  bool ignore_case = false;
  bool extended = false;  // spaces and comments mean nothing
};

// Returns whether groups have names; beside them groups without a name are not counted.
bool has_named_groups(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size(); at += pattern[at] == '\\' ? 2 : 1) {
    const std::string_view rest = pattern.substr(at);
    if (rest.starts_with("(?'") || (rest.starts_with("(?<") && !rest.starts_with("(?<=") && !rest.starts_with("(?<!")))
      return true;
  }
  return false;
}

bool are_digits(std::string_view text) { return text.find_first_not_of(kDigits) == std::string_view::npos; }

// Reads how often the part before comes. Returns PCRE2's mark for it, "" where there is none. {3,1} is {1,3} that gives
// nothing back, and a + behind braces repeats once more.
std::string take_quantifier(Reader& reader) {
  if (const std::string_view sign = reader.take_while("*+?", 1); !sign.empty())
    return fmt::format("{}{}", sign, reader.take_while("+?", 1));
  const size_t end = reader.at("{") ? reader.rest().find('}') : std::string_view::npos;
  if (end == std::string_view::npos) return "";
  const std::string_view body = reader.rest().substr(1, end - 1);
  const size_t comma = body.find(',');
  const std::string_view least = body.substr(0, comma);
  const std::string_view most = comma == std::string_view::npos ? "" : body.substr(comma + 1);
  if (!are_digits(least) || !are_digits(most) || least.size() + most.size() == 0) return "";
  if (least.size() > 5 || most.size() > 5) reader.refuse("repetitions of more than 65535", "fewer");
  reader.take(end + 1);
  if (comma == std::string_view::npos) return fmt::format("{{{}}}", least);
  const int low = least.empty() ? 0 : std::stoi(std::string(least));
  if (!most.empty() && std::stoi(std::string(most)) < low) return fmt::format("{{{},{}}}+", most, low);
  return fmt::format("{{{},{}}}{}", low, most, reader.take_while("?", 1));
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where)
      : reader_(pattern, where), named_(has_named_groups(pattern)) {}

  std::string whole() {
    std::string out = branches({});
    if (!reader_.done()) reader_.refuse("a ) that closes nothing", "\\)");
    if (calls_ && references_) reader_.refuse("\\g<…> beside \\k<…> or \\1", "one of them alone");
    return out;
  }

 private:
  // Translates up to the end of the group, or of the pattern.
  std::string branches(Options options) {
    if (++depth_ > kMostGroups) reader_.refuse("more than 200 groups inside of each other", "fewer");
    std::string out;
    std::u32string run;  // of characters that stand for themselves and are not repeated
    const auto end_run = [&] { out += literals(std::exchange(run, {}), options); };
    for (skip(options); !reader_.done() && !reader_.at(")"); skip(options)) {
      const std::u32string plain = take_plain_group(options, 0);
      run += plain;
      if (!plain.empty()) continue;
      const auto character = take_literal();
      if (character) skip(options);
      if (character && !is_repeated()) {
        run += *character;
        continue;
      }
      end_run();
      out += character           ? repeated(literals({*character}, options), options)
             : reader_.take("|") ? "|"
                                 : repeated(atom(options), options);
    }
    end_run();
    --depth_;
    return out;
  }

  // Skips comments, and with (?x) spaces.
  void skip(Options options) {
    for (;;) {
      if (reader_.take("(?#")) {
        reader_.take_before(')');
      } else if (options.extended && reader_.take("#")) {
        reader_.take(std::min(reader_.rest().find('\n'), reader_.rest().size()));
      } else if (!options.extended || reader_.take_while(" \t\n\r\f", reader_.rest().size()).empty()) {
        return;
      }
    }
  }

  // Returns whether a mark of repetition stands here, and leaves it there. Goes on behind each {1}, which repeats
  // nothing.
  bool is_repeated() {
    const size_t before = reader_.place();
    std::string mark = take_quantifier(reader_);
    size_t behind = before;
    for (; mark == "{1}" || mark == "{1,1}"; mark = take_quantifier(reader_)) behind = reader_.place();
    reader_.go_back(mark.empty() ? behind : before);
    return !mark.empty();
  }

  std::string repeated(std::string part, Options options) {
    for (bool again = false;; again = true) {
      skip(options);
      const std::string mark = take_quantifier(reader_);
      if (mark.empty()) return part;
      part = (again ? "(?:" + part + ")" : part) + mark;
    }
  }

  static std::string literals(const std::u32string& run, Options options) {
    if (options.ignore_case) return caseless_literal(run);
    std::string out;
    for (const char32_t character : run) out += literal(character);
    return out;
  }

  // Takes the characters of a group (?:…) that holds nothing else and comes once: they stand as if there were no
  // group, and may equal one character together with those beside it. Returns "" and reads nothing where there is no
  // such group.
  std::u32string take_plain_group(Options options, int depth) {
    const size_t before = reader_.place();
    std::u32string all;
    if (depth > kMostGroups || !reader_.take("(?:")) return all;
    bool plain = true;
    for (skip(options); plain && !reader_.done() && !reader_.at(")"); skip(options)) {
      std::u32string part = take_plain_group(options, depth + 1);
      if (const auto character = part.empty() ? take_literal() : std::nullopt) part = *character;
      skip(options);
      plain = !part.empty() && !is_repeated();
      all += part;
    }
    plain = plain && reader_.take(")");
    if (plain) skip(options);
    if (plain && !all.empty() && !is_repeated()) return all;
    reader_.go_back(before);
    return {};
  }

  // Takes a character that stands for itself, or for which an escape stands; nothing where anything else stands here.
  std::optional<char32_t> take_literal() {
    static constexpr std::string_view kSyntax = "^$.[|()*+?";
    if (!reader_.at("\\")) {
      if (kSyntax.find(reader_.rest()[0]) != std::string_view::npos) return std::nullopt;
      return reader_.take_character();
    }
    if (means_more(reader_.rest().substr(1))) return std::nullopt;
    reader_.take("\\");
    const auto escaped = reader_.take_escaped(true);
    return escaped ? *escaped : reader_.take_character();
  }

  // Returns whether an escape is more than a character.
  bool means_more(std::string_view escape) const {
    static constexpr std::string_view kLetters = "AZzGbBKRNOXyYdDwWsShH";
    if (escape.empty()) return false;
    if (kLetters.find(escape[0]) != std::string_view::npos) return true;
    if (escape[0] == 'p' || escape[0] == 'P') return escape.substr(1).starts_with('{');
    if (escape[0] == 'k' || escape[0] == 'g') return escape.substr(1, 1) == "<" || escape.substr(1, 1) == "'";
    const std::string number(escape.substr(0, std::min<size_t>(escape.find_first_not_of(kDigits), 4)));
    return !number.empty() && number[0] != '0' && (number.size() == 1 || std::stoi(number) <= groups_);
  }

  std::string atom(Options options) {
    if (reader_.take("\\")) return escape();
    if (reader_.take("[")) return take_class(reader_, options.ignore_case);
    if (reader_.take("(")) return group(options);
    if (reader_.take("^")) return "(?m:^)";
    if (reader_.take("$")) return "(?m:$)";
    if (reader_.take(".")) return ".";
    reader_.refuse(fmt::format("'{}' behind nothing", reader_.rest()[0]), fmt::format("\\{}", reader_.rest()[0]));
  }

  std::string escape() {
    static const std::map<std::string, std::string, std::less<>> kSame = {
        {"A", "\\A"}, {"Z", "\\Z"},    {"z", "\\z"},    {"G", "\\G"},
        {"K", "\\K"}, {"N", "[^\\n]"}, {"O", "(?s:.)"}, {"R", "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])"}};
    if (const auto set = take_set(reader_, false)) return set->expression();
    if (reader_.at("b") || reader_.at("B")) return word_boundary(reader_.take(1) == "B");
    if (reader_.at("k") || reader_.at("g")) return named_escape(reader_.take(1) == "g");
    if (const auto number = reader_.take_while(kDigits, 4); !number.empty()) return reference(std::string(number));
    const auto found = kSame.find(reader_.take(1));
    if (found == kSame.end()) reader_.refuse("\\X, \\y and \\Y", "\\P{M}\\p{M}*");
    return found->second;
  }

  std::string named_escape(bool call) {
    const char end = reader_.take("<") ? '>' : reader_.take(1)[0];
    const std::string group = target(reader_.take_before(end));
    return call ? called(group) : reference(group);
  }

  // Returns the name of a group, or its number from the start.
  std::string target(std::string_view written) {
    const size_t sign = written.find_first_of("+-");
    const std::string_view digits = written.substr(std::min(sign + 1, written.size()));
    if (sign == std::string_view::npos) return std::string(written);
    if (sign != 0 || digits.empty() || digits.size() > 4 || !are_digits(digits))
      reader_.refuse("levels of groups", "the name alone");
    const int number = std::stoi(std::string(digits));
    return fmt::format("{}", written[0] == '+' ? groups_ + number : groups_ + 1 - number);
  }

  std::string reference(const std::string& group) {
    if (std::find(open_.begin(), open_.end(), group) != open_.end())
      reader_.refuse("a reference to a group in itself", "the group and the reference side by side");
    references_ = true;
    return "\\g{" + group + "}";
  }

  std::string called(const std::string& group) {
    calls_ = true;
    if (group == "0") return "(?R)";
    return are_digits(group) ? "(?" + group + ")" : "(?&" + group + ")";
  }

  // Translates a group from behind its "(".
  std::string group(Options options) {
    for (const char* start : {"?:", "?=", "?!", "?<=", "?<!", "?>"})
      if (reader_.take(start)) return closed(std::string("(") + start, options);
    if (reader_.take("?<")) return counted(std::string(reader_.take_before('>')), options);
    if (reader_.take("?'")) return counted(std::string(reader_.take_before('\'')), options);
    if (reader_.take("?(")) return closed("(?(" + condition() + ")", options);
    if (reader_.take("?")) return with_options(options);
    if (reader_.at("*")) reader_.refuse("(*…)", "\\(");
    return named_ ? closed("(?:", options) : counted("", options);
  }

  std::string closed(const std::string& start, Options options) {
    const std::string inside = branches(options);
    if (!reader_.take(")")) reader_.refuse("a ( that nothing closes", "\\(");
    return start + inside + ")";
  }

  std::string counted(const std::string& name, Options options) {
    const size_t outer = open_.size();
    open_.push_back(fmt::format("{}", ++groups_));
    open_.push_back(name);
    const std::string out = closed(name.empty() ? "(" : "(?<" + name + ">", options);
    open_.resize(outer);
    return out;
  }

  std::string condition() {
    const std::string written(reader_.take_before(')'));
    const bool named = written.size() > 2 && (written[0] == '<' || written[0] == '\'');
    if (!named && (written.empty() || !are_digits(written))) reader_.refuse("conditions but of groups", "(?(1)…)");
    return written;
  }

  // Translates options. (?i) holds to the end of its group, and further branches of that group become its own.
  std::string with_options(Options options) {
    const std::string_view letters = reader_.take_while("imx-", reader_.rest().size());
    if (letters.empty() || !(reader_.at(")") || reader_.at(":")))
      reader_.refuse(fmt::format("(?{}{}", letters, reader_.take(1)), "(?:…)");
    std::string marks[2];
    bool off = false;
    for (const char letter : letters) {
      if (letter == 'i') options.ignore_case = !off;
      if (letter == 'x') options.extended = !off;
      if (letter == 'i' || letter == 'm') marks[off] += letter == 'i' ? 'i' : 's';
      off = off || letter == '-';
    }
    const std::string start = fmt::format("(?{}{}{}:", marks[0], marks[1].empty() ? "" : "-", marks[1]);
    return reader_.take(")") ? start + branches(options) + ")" : (reader_.take(":"), closed(start, options));
  }

  Reader reader_;
  bool named_;
  int depth_ = 0;
  int groups_ = 0;                 // groups that count, up to here
  std::vector<std::string> open_;  // numbers and names of the groups that are open here
  bool references_ = false, calls_ = false;
};

}  // namespace

std::string translated(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).whole();
}

}  // namespace collimate::text::oniguruma
