#pragma once

#include <memory>

#include "collimate/cli/open_model.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/model/model.h"

namespace collimate::cli {

// Opens the draft model that guesses tokens for `open`; it computes in the same type and on the same threads. Returns
// null when the options ask for none. Throws InputError when speculation and draft_model contradict each other, when
// the directory holds no language model, or when its tokenizer has other tokens, naming the first.
std::unique_ptr<model::Model> open_draft(const generate::SpeculationOptions& options, OpenModel& open);

}  // namespace collimate::cli
