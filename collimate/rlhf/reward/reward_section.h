#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/config.h"
#include "collimate/base/option.h"

namespace collimate::rlhf {

// The keys that every entry of a config's `reward:` list has.
struct RewardSection : base::Section {
  base::Option<double> weight{this, "weight", 1.0, "", "factor of this reward in the sum of all"};
  base::Option<nlohmann::json> on_error{
      this,
      "on_error",
      "stop",
      "",
      "what happens when the reward of a sample fails: stop ends the run, drop leaves the sample out, a number becomes "
      "its reward; if every reward gave None, the strictest of the list (stop, then drop, then the lowest number)",
      base::satisfying("stop, drop or a finite number", [](const nlohmann::json& value) {
        return value == "stop" || value == "drop" || (value.is_number() && std::isfinite(value.get<double>()));
      })};
};

// A rule's entry has these keys; each rule adds its own.
struct RuleSection : RewardSection {
  base::Option<std::string> rule{this, "rule", "", "", "its name"};
};

// An entry whose results may be others when it is asked again has these keys.
struct JournaledSection : RewardSection {
  base::Option<bool> deterministic{this, "deterministic", false, "",
                                   "true: it gives the same when it is asked again, so that a resumed run asks again; "
                                   "false: its results are kept in the journal"};
};

// A C++ function's entry has these keys; the function reads its own beside them.
struct FunctionSection : JournaledSection {
  base::Option<std::string> function{this, "function", "", "", "its name", base::not_empty()};
};

struct PythonSection : JournaledSection {
  base::Option<std::string> python{this, "python", "", "", "FILE.py or FILE.py:function", base::not_empty()};
  base::Option<double> timeout_seconds{
      this,
      "timeout_seconds",
      5.0,
      "seconds",
      "time limit for one sample; samples that take longer together are asked one by one",
      base::above(0.0)};
  base::Option<double> start_timeout_seconds{
      this, "start_timeout_seconds", 60.0, "seconds", "time limit for importing the file", base::above(0.0)};
  base::Option<int64_t> batch_samples{
      this, "batch_samples", 64, "samples", "most samples that one call gets", base::at_least(int64_t{1})};
  base::Option<std::string> interpreter{this, "interpreter", "", "",
                                        "the Python program that runs it; by default $COLLIMATE_PYTHON, else python3"};
};

template <class S>
std::unique_ptr<base::Section> section_of() {
  return std::make_unique<S>();
}

// An entry as its section. InputError for unknown keys and wrong values.
template <class Section>
Section read_entry(const nlohmann::json& entry) {
  Section section;
  base::apply(base::from_json(entry, "reward"), "reward", section);
  return section;
}

}  // namespace collimate::rlhf
