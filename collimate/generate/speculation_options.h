#pragma once

#include <cstdint>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"

namespace collimate::generate {

// A user says this of speculation wherever something generates: options of the section that has this as a member.
struct SpeculationOptions {
  explicit SpeculationOptions(base::Section* section);

  base::Option<std::string> kind;
  base::Option<int64_t> most;
  base::Option<std::string> draft_model;

  // ServiceOptions::speculation_tokens.
  int64_t tokens() const { return kind == "off" ? 0 : most.get(); }
  // Does a smaller model guess? InputError where one is asked for and not named, or the other way.
  bool drafts() const;
};

}  // namespace collimate::generate
