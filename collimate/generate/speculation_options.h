#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/section.h"

namespace collimate::generate {

// A user says this of speculation wherever something generates: two options of the section that has this as a member.
struct SpeculationOptions {
  explicit SpeculationOptions(base::Section* section)
      : SpeculationOptions(section, {"off", "ngram"},
                           "ngram guesses tokens from earlier places of the text and keeps those that would be drawn "
                           "anyway; results stay the same") {}
  SpeculationOptions(base::Section* section, std::vector<std::string> kinds, const char* help)
      : kind(section, "speculation", "off", "", help, base::one_of(std::move(kinds))),
        most(section, "speculation_tokens", 8, "tokens", "most tokens that are guessed at a time",
             base::between(int64_t{1}, int64_t{15})) {}

  base::Option<std::string> kind;
  base::Option<int64_t> most;

  // ServiceOptions::speculation_tokens.
  int64_t tokens() const { return kind == "off" ? 0 : most.get(); }
};

// The options where a directory is opened to generate with it and nothing trains the model meanwhile.
struct DraftOptions : SpeculationOptions {
  explicit DraftOptions(base::Section* section)
      : SpeculationOptions(
            section, {"off", "ngram", "draft"},
            "ngram guesses tokens from earlier places of the text, draft with a smaller model; those that "
            "would be drawn anyway are kept, so that results stay the same"),
        model(section, "draft_model", "", "", "directory of the smaller model that guesses, of the same tokenizer") {}

  base::Option<std::string> model;
};

}  // namespace collimate::generate
