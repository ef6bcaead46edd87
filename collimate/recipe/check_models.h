#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/recipe/page.h"
#include "collimate/text/tokenizer.h"

namespace collimate::recipe {

// A run gives its models so much to read at most.
struct RowExtent {
  int64_t tokens = 0;      // prompt and completion
  int32_t largest_id = 0;  // of the data's tokens
  std::string drawn_by;    // the option that says how many of the tokens are drawn; "" where none is

  // Grows to these rows, each with so many tokens more, which that option says.
  void include(const Batch& rows, int64_t more, const std::string& option);
};

struct ModelFindings {
  // Why the plan's models cannot read such rows, each in the form of base/error.h: more tokens than a model's
  // positions, ids beyond its vocabulary, or a tokenizer that reads an id of the policy's as another token. Ids that
  // only one tokenizer has are no reason: a policy may have got a padding token. Of a directory without tokenizer only
  // the size of the vocabulary is known.
  std::vector<std::string> problems;
  std::vector<std::string> lines;  // of each model that reads images too: that its language model alone is read
};
// Reads config.json and tokenizers, no weights.
ModelFindings inspect_models(const Plan& plan, const text::Tokenizer& policy, const RowExtent& rows);

// Why there is nothing to read for a model that the config names: its path is no directory.
std::vector<std::string> missing_models(const Config& config);

// Says of each model that trains adapters how many of its parameters they are: "lora: policy trains 768 of 20,000 …".
// InputError where they do not fit the model.
std::vector<std::string> adapter_lines(const Plan& plan);

}  // namespace collimate::recipe
