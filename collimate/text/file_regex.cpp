#include "collimate/text/file_regex.h"

#include "collimate/base/error.h"
#include "collimate/text/oniguruma/translate.h"

namespace collimate::text {

Regex read_file_regex(const nlohmann::json& pattern, const std::string& where) {
  const std::string text = pattern.at("Regex");
  const std::string translated = oniguruma::translated(text, where);
  if (const std::string why = Regex::problem(translated); !why.empty())
    throw base::InputError(
        base::expectation(where, "a pattern that PCRE2 compiles", fmt::format("'{}' ({})", text, why),
                          "fixed lengths behind (?<= and one group of a name, or the model's tiktoken.model alone"));
  return Regex(translated, where);
}

}  // namespace collimate::text
