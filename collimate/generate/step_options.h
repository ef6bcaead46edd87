#pragma once

#include <cstdint>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"

// These options bound the steps of a Service, wherever one runs for long. They set the ServiceOptions of the same
// names.
namespace collimate::generate {

struct BatchTokensOption : base::Option<int64_t> {
  explicit BatchTokensOption(base::Section* section)
      : Option(section, "max_batch_tokens", 2048, "tokens",
               "most tokens that one step of generation computes, of prompts and of completions",
               base::at_least(int64_t{1})) {}
};

struct BatchSequencesOption : base::Option<int64_t> {
  BatchSequencesOption(base::Section* section, int64_t standard)
      : Option(section, "max_batch_sequences", standard, "completions",
               "most completions that are generated at the same time; further ones wait", base::at_least(int64_t{1})) {}
};

struct CacheBlocksOption : base::Option<int64_t> {
  // `most` is help text that says what limits the default choice.
  explicit CacheBlocksOption(base::Section* section, const std::string& most = "")
      : Option(section, "cache_blocks", 0, "blocks",
               "size of the key-value cache, in blocks of 16 tokens; 0 takes what is needed" + most,
               base::at_least(int64_t{0})) {}
};

}  // namespace collimate::generate
