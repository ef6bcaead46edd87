#include "collimate/text/oniguruma/sets.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include "collimate/base/lower_case.h"
#include "collimate/text/regex.h"

namespace collimate::text::oniguruma {
namespace {

using Sets = std::map<std::string, CharacterSet, std::less<>>;

// These sets name the characters that became alphabetic, or small, in Unicode 16, though they are older than it.
constexpr const char* kAlphabetic =
    "\\p{Alphabetic}\\x{363}-\\x{36f}\\x{c04}\\x{f82}\\x{f83}\\x{1dd3}-\\x{1de6}\\x{11080}\\x{11081}";
constexpr const char* kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr const char* kOutsideWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}²³¹¼½¾";

// Returns the sets that brackets and properties name alike.
const Sets& posix_sets() {
  static const Sets table = {{"alnum", {kAlphabetic + std::string("\\p{Nd}")}},
                             {"alpha", {kAlphabetic}},
                             {"ascii", {"\\x00-\\x7f"}},
                             {"blank", {"\\p{Zs}\\x09"}},
                             {"cntrl", {"\\p{Cc}"}},
                             {"digit", {"\\p{Nd}"}},
                             {"graph", {"\\s\\p{Cc}\\p{Cn}\\p{Cs}", true}},
                             {"lower", {"\\p{Lowercase}\\x{10fc}\\x{a7f2}-\\x{a7f4}\\x{ab69}"}},
                             {"print", {"\\p{Cc}\\p{Cn}\\p{Cs}\\p{Zl}\\p{Zp}", true}},
                             {"punct", {"\\p{P}\\p{S}"}},
                             {"space", {"\\s"}},
                             {"upper", {"\\p{Uppercase}"}},
                             {"word", {kWord}},
                             {"xdigit", {"0-9a-fA-F"}}};
  return table;
}

// PCRE2 lacks these long names of general categories.
constexpr std::pair<std::string_view, std::string_view> kCategories[] = {
    {"closepunctuation", "Pe"},
    {"combiningmark", "M"},
    {"connectorpunctuation", "Pc"},
    {"control", "Cc"},
    {"currencysymbol", "Sc"},
    {"dashpunctuation", "Pd"},
    {"decimalnumber", "Nd"},
    {"enclosingmark", "Me"},
    {"finalpunctuation", "Pf"},
    {"format", "Cf"},
    {"initialpunctuation", "Pi"},
    {"letter", "L"},
    {"letternumber", "Nl"},
    {"lineseparator", "Zl"},
    {"lowercaseletter", "Ll"},
    {"mark", "M"},
    {"mathsymbol", "Sm"},
    {"modifierletter", "Lm"},
    {"modifiersymbol", "Sk"},
    {"nonspacingmark", "Mn"},
    {"number", "N"},
    {"openpunctuation", "Ps"},
    {"other", "C"},
    {"otherletter", "Lo"},
    {"othernumber", "No"},
    {"otherpunctuation", "Po"},
    {"othersymbol", "So"},
    {"paragraphseparator", "Zp"},
    {"privateuse", "Co"},
    {"punctuation", "P"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"spacingmark", "Mc"},
    {"surrogate", "Cs"},
    {"symbol", "S"},
    {"titlecaseletter", "Lt"},
    {"unassigned", "Cn"},
    {"uppercaseletter", "Lu"},
};

// Returns the properties that mean something else in brackets, or that only Oniguruma has.
const Sets& other_sets() {
  static const Sets table = {{"assigned", {"\\p{Cn}", true}},
                             {"casedletter", {"\\p{Lu}\\p{Ll}\\p{Lt}"}},
                             {"lc", {"\\p{Lu}\\p{Ll}\\p{Lt}"}},
                             {"posixpunct", {"\\p{P}\\p{S}"}},
                             {"punct", {"\\p{P}"}}};
  return table;
}

// Returns PCRE2's own property, a script before all others: \p{Greek} alone also holds what is used with Greek.
std::optional<CharacterSet> property_of_pcre2(const std::string& name) {
  for (const auto& [longer, category] : kCategories)
    if (name == longer) return CharacterSet{fmt::format("\\p{{{}}}", category)};
  for (const char* kind : {"sc:", ""})
    if (const std::string members = fmt::format("\\p{{{}{}}}", kind, name); Regex::problem(members).empty())
      return CharacterSet{members};
  return std::nullopt;
}

CharacterSet property(Reader& reader, bool in_class) {
  const std::string_view written = reader.take_before('}');
  const std::string name = base::plain_name(written);
  if (name == "word" && !in_class) return {kOutsideWord};
  if (const auto found = other_sets().find(name); found != other_sets().end()) return found->second;
  if (const auto found = posix_sets().find(name); found != posix_sets().end()) return found->second;
  if (const auto found = property_of_pcre2(name)) return *found;
  reader.refuse(fmt::format("the property '{}'", written), "a general category or a script");
}

std::optional<CharacterSet> set_of_letter(char letter, bool in_class) {
  const bool negated = std::isupper(static_cast<unsigned char>(letter)) != 0;
  switch (std::tolower(letter)) {
    case 'd':
      return CharacterSet{"\\p{Nd}", negated};
    case 'w':
      return CharacterSet{in_class ? kWord : kOutsideWord, negated};
    case 's':
      return CharacterSet{"\\s", negated};
    case 'h':
      return CharacterSet{"0-9a-fA-F", negated};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string CharacterSet::expression() const { return fmt::format("[{}{}]", negated ? "^" : "", members); }

std::optional<CharacterSet> take_set(Reader& reader, bool in_class) {
  const bool opposite = reader.at("P{");
  if (opposite || reader.at("p{")) {
    reader.take(2);
    const bool negated = reader.take("^") != opposite;
    CharacterSet set = property(reader, in_class);
    set.negated = set.negated != negated;
    return set;
  }
  if (reader.done()) return std::nullopt;
  const auto set = set_of_letter(reader.rest()[0], in_class);
  if (set) reader.take(1);
  return set;
}

std::optional<CharacterSet> take_bracket(Reader& reader) {
  if (named_class(reader.rest()) == 0) return std::nullopt;
  reader.take(2);
  const bool negated = reader.take("^");
  const std::string_view name = reader.take_before(':');
  const auto found = posix_sets().find(name);
  if (found == posix_sets().end() || !reader.take("]"))
    reader.refuse(fmt::format("the class [:{}", name), "one of [:alpha:] to [:xdigit:]");
  CharacterSet set = found->second;
  set.negated = set.negated != negated;
  return set;
}

std::string word_boundary(bool negated) {
  const std::string same = negated ? "=" : "!", other = negated ? "!" : "=";
  return fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", kOutsideWord, same, other);
}

}  // namespace collimate::text::oniguruma
