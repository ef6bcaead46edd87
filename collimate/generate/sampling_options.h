#pragma once

#include <array>
#include <iterator>
#include <variant>

#include "collimate/base/json_text.h"
#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/sampling_fields.h"

namespace collimate::generate {

// How tokens are drawn, as rollouts, evaluation and the command line declare it: an option for each row of
// kSamplingFields that has a help text, with its limits.
class SamplingOptions : public base::Section {
 public:
  // `greedy`: a temperature of 0 is allowed.
  explicit SamplingOptions(double default_temperature = SamplingParams().temperature, bool greedy = true);

  // Gives what is set, and the defaults of members that are no option. Reads the files that it names.
  SamplingParams values() const;

  // Gives the same for completions of so many tokens. InputError, naming where it was set, when min_tokens is more.
  SamplingParams params(int64_t max_tokens) const;

  using Item =
      std::variant<std::monostate, base::Option<double>, base::Option<int64_t>, base::Option<bool>,
                   base::Option<nlohmann::json>, base::Option<std::vector<int64_t>>,
                   base::Option<std::vector<std::string>>, base::Option<std::string>, base::Option<base::JsonText>>;

 private:
  std::array<Item, std::size(kSamplingFields)> items_;  // of each row; nothing where it is no option
};

}  // namespace collimate::generate
