#include "collimate/cli/open_draft.h"

#include "collimate/host/hub_cache.h"
#include "collimate/text/equal_tokens.h"

namespace collimate::cli {

std::unique_ptr<model::Model> open_draft(const generate::SpeculationOptions& options, OpenModel& open) {
  if (!options.drafts()) return nullptr;
  const std::string directory = host::model_directory(options.draft_model);
  text::require_equal_tokens(*open.tokenizer, *text::load_tokenizer(directory), "draft_model");
  const model::WeightsOptions weights{.compute = open.model.weights().options().compute, .mapped = true};
  return std::make_unique<model::Model>(model::load_huggingface(directory, "lm", weights, open.exec), open.exec);
}

}  // namespace collimate::cli
