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
             "ngram: guess tokens from where the text's end has been before, and keep those that are drawn anyway; the "
             "results are the same",
             base::one_of({"off", "ngram"})),
        most(section, "speculation_tokens", 8, "tokens", "guessed at a time at most",
             base::between(int64_t{1}, int64_t{15})) {}

  base::Option<std::string> kind;
  base::Option<int64_t> most;

  // ServiceOptions::speculation_tokens.
  int64_t tokens() const { return kind == "off" ? 0 : most.get(); }
};

}  // namespace collimate::generate
