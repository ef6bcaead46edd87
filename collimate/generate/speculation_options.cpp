#include "collimate/generate/speculation_options.h"

#include <nlohmann/json.hpp>

#include "collimate/base/error.h"

namespace collimate::generate {

SpeculationOptions::SpeculationOptions(base::Section* section)
    : kind(
          section, "speculation", "off", "",
          "ngram guesses tokens from earlier places of the text, draft with a smaller model; those that would be drawn "
          "anyway are kept, so that results stay the same",
          base::one_of({"off", "ngram", "draft"})),
      most(section, "speculation_tokens", 8, "tokens", "most tokens that are guessed at a time",
           base::between(int64_t{1}, int64_t{15}), base::only_with{"speculation"}),
      draft_model(section, "draft_model", "", "", "directory of the smaller model that guesses, of the same tokenizer",
                  base::only_with{"speculation", [](const nlohmann::json& kind) { return kind == "draft"; }}) {}

bool SpeculationOptions::drafts() const {
  const bool draft = kind == std::string("draft"), named = !draft_model->empty();
  if (draft && !named)
    throw base::InputError(base::expectation("draft_model", "the directory of a smaller model beside speculation draft",
                                             "none", "speculation ngram, which needs no model"));
  if (named && !draft)
    throw base::InputError(base::expectation("speculation", "draft beside draft_model", kind.get(),
                                             "speculation draft, or leaving draft_model out"));
  return draft;
}

}  // namespace collimate::generate
