#pragma once

#include <nlohmann/json.hpp>

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/generate/beams.h"

namespace collimate::generate {

// These are the options of beam search for a model that completes prompts. They belong to the section that has this
// struct as a member.
struct BeamOptions {
  explicit BeamOptions(base::Section* section)
      : beams(section, "num_beams", 1, "beams",
              "how many completions a search keeps at a time, whose best ones are given; 1 draws instead",
              base::at_least(int64_t{1})),
        length_penalty(section, "length_penalty", BeamParams().length_penalty, "",
                       "a searched completion's score is the sum of its log-probs over its length to this power"),
        early_stopping(section, "early_stopping", false, "",
                       "a search ends: true, with num_beams completions; false, when no beam that ended now would "
                       "beat the worst of them; never, when none could later",
                       base::satisfying("true, false or never", [](const nlohmann::json& value) {
                         return value.is_boolean() || value == "never";
                       })) {}

  base::Option<int64_t> beams;
  base::Option<double> length_penalty;
  base::Option<nlohmann::json> early_stopping;

  BeamParams params() const {
    const nlohmann::json& early = early_stopping.get();
    return {.beams = beams,
            .length_penalty = length_penalty,
            .early = early == "never" ? EarlyStopping::kNever
                     : early == true  ? EarlyStopping::kYes
                                      : EarlyStopping::kNo};
  }
};

}  // namespace collimate::generate
