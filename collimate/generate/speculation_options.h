#pragma once

#include <cstdint>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/section.h"

namespace collimate::generate {

// A user says this of speculation wherever something generates: two options of the section that has this as a member.
struct SpeculationOptions {
  explicit SpeculationOptions(base::Section* section)
      : kind(section, "speculation", "off", "",
             "ngram guesses tokens from earlier places of the text and keeps those that would be drawn anyway; results "
             "stay the same",
             base::one_of({"off", "ngram"})),
        most(section, "speculation_tokens", 8, "tokens", "most tokens that are guessed at a time",
             base::between(int64_t{1}, int64_t{15})) {}

  base::Option<std::string> kind;
  base::Option<int64_t> most;

  // ServiceOptions::speculation_tokens.
  int64_t tokens() const { return kind == "off" ? 0 : most.get(); }
};

}  // namespace collimate::generate
