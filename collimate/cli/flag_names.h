#pragma once

#include <algorithm>
#include <string>

#include "collimate/recipe/option_names.h"

namespace collimate::cli {

// Returns names by which messages call options as flags: "--long-rows drop", and "-n" for samples_per_prompt.
inline recipe::OptionNames flag_names() {
  const auto flag = [](std::string key) {
    std::ranges::replace(key, '_', '-');
    return key == "samples-per-prompt" ? "-n" : "--" + key;
  };
  return {.of = flag, .between = " ", .quote = "'"};
}

}  // namespace collimate::cli
