#pragma once

#include <cstdint>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"

namespace collimate::generate {

// These are the options of speculation, wherever something generates. They belong to the section that has this struct
// as a member.
struct SpeculationOptions {
  explicit SpeculationOptions(base::Section* section);

  base::Option<std::string> kind;
  base::Option<int64_t> most;
  base::Option<std::string> draft_model;

  // Returns the value for ServiceOptions::speculation_tokens.
  int64_t tokens() const { return kind == "off" ? 0 : most.get(); }
  // Returns whether a smaller model guesses. Throws InputError if one is asked for but not named, or named but not
  // asked for.
  bool drafts() const;
};

}  // namespace collimate::generate
