#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/config.h"
#include "collimate/base/option.h"

namespace collimate::rlhf {

// The keys that every entry of a config's `reward:` list has.
struct RewardSection : base::Section {
  base::Option<double> weight{this, "weight", 1.0, "", "in the sum of rewards"};
  base::Option<nlohmann::json> on_error{this, "on_error", "stop", "", "drop, stop or a number"};
};

// Those of a rule's entry; each rule adds its own.
struct RuleSection : RewardSection {
  base::Option<std::string> rule{this, "rule", "", "", "its name"};
};

template <class S>
std::unique_ptr<base::Section> section_of() {
  return std::make_unique<S>();
}

// An entry as its rule's section. InputError for unknown keys and wrong types.
template <class Section>
Section read_rule(const nlohmann::json& entry) {
  Section section;
  base::apply(entry, "reward", section);
  return section;
}

}  // namespace collimate::rlhf
