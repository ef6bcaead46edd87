#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/recipe/page.h"
#include "collimate/text/tokenizer.h"

namespace collimate::recipe {

// Says how much a run gives its models to read at most.
struct RowExtent {
  int64_t tokens = 0;      // of the longest row, prompt and completion together
  int32_t largest_id = 0;  // the largest token id of the data
  std::string drawn_by;    // the option that limits the drawn tokens of that row; "" where none are drawn

  // Grows to these rows, each of which may have `more` tokens drawn behind it, as `option` says.
  void include(const Batch& rows, int64_t more, const std::string& option);
};

struct ModelFindings {
  // Says why the plan's models cannot read such rows, each in the form of base/error.h. A row has more tokens than a
  // model has positions, an id is beyond its vocabulary, or its tokenizer reads an id of the policy's as another token.
  // An id that only one tokenizer has is no problem, as a policy may have got a padding token. Where a directory has no
  // tokenizer, only the size of the vocabulary is compared. A teacher of another vocabulary, and a reward model in the
  // place of a language model, are problems too.
  std::vector<std::string> problems;
  std::vector<std::string> lines;  // for each model that also reads images: only its language model is read
};
// Reads config.json files and tokenizers, no weights.
ModelFindings inspect_models(const Plan& plan, const text::Tokenizer& policy, const RowExtent& rows);

// Returns a problem for each model that the config names and whose path is no directory, and for a policy without a
// path.
std::vector<std::string> missing_models(const Config& config);

// Returns a line for each model that trains adapters, with how many of its parameters they are: "lora: policy trains
// 768 of 20,000 …". Throws InputError where the adapters do not fit the model.
std::vector<std::string> adapter_lines(const Plan& plan);

}  // namespace collimate::recipe
