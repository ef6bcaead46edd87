#pragma once

#include <array>
#include <iterator>
#include <variant>

#include "collimate/base/json_text.h"
#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/sampling_fields.h"

namespace collimate::generate {

// The section by which rollouts, evaluation and the command line say how tokens are drawn. It has an option for each
// row of kSamplingFields that has a help text, with the row's limits.
class SamplingOptions : public base::Section {
 public:
  // With `greedy` a temperature of 0 is allowed.
  explicit SamplingOptions(double default_temperature = SamplingParams().temperature, bool greedy = true);

  // Returns the values of the options, and the defaults of members that are no option. Reads the files that options
  // name.
  SamplingParams values() const;

  // Returns values() with this max_tokens. Throws InputError, naming where it was set, when min_tokens is larger.
  SamplingParams params(int64_t max_tokens) const;

  using Item =
      std::variant<std::monostate, base::Option<double>, base::Option<int64_t>, base::Option<bool>,
                   base::Option<nlohmann::json>, base::Option<std::vector<int64_t>>,
                   base::Option<std::vector<std::string>>, base::Option<std::string>, base::Option<base::JsonText>>;

 private:
  std::array<Item, std::size(kSamplingFields)> items_;  // by row; monostate for a row that is no option
};

}  // namespace collimate::generate
