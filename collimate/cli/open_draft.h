#pragma once

#include <memory>

#include "collimate/cli/open_model.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/model/model.h"

namespace collimate::cli {

// Opens the model that guesses for `open`, in the same type of numbers, over its threads; null where the options ask
// for none. InputError: the two options contradict each other, the directory is no language model's, or its tokenizer
// has other tokens, of which the first is named.
std::unique_ptr<model::Model> open_draft(const generate::SpeculationOptions& options, OpenModel& open);

}  // namespace collimate::cli
