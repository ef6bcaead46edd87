#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/cli/rank_models.h"
#include "collimate/cli/service_ranks.h"
#include "collimate/generate/step_options.h"

namespace collimate::cli {

// How `serve` and `chat` load a model and generate with it.
struct ModelOptions : base::Section, InferenceOptions {
  ModelOptions() : InferenceOptions(this) {}

  COLLIMATE_OPTION(
      int64_t, max_sequence_tokens, 0, "tokens",
      "most tokens of a prompt and its completion; 0 takes the model's positions, or what the cache holds of them",
      base::at_least(int64_t{0}));
  generate::CacheBlocksOption cache_blocks{this, ", up to 4 GiB"};
  MeasureInt8Option measure_int8{this};
};

// A model directory with what generating from it needs, on the devices of a layout. One thread at a time.
class LoadedModel {
 public:
  // `service`: limits of a step. InputError when the directory is no model's.
  LoadedModel(const std::string& directory, const ModelOptions& options, const LayoutOptions& layout,
              generate::ServiceOptions service);

  // A new one; it refers to this object.
  std::unique_ptr<generate::Completer> service();
  // Scores a prompt's tokens; InputError as PromptScore.
  std::unique_ptr<PromptScoreRanks> prompt_score(std::span<const int32_t> ids,
                                                 const generate::SamplingParams& sampling);
  const text::Renderer& renderer() const { return models_.first().renderer; }
  // Prompt and completion, no more than the cache holds.
  int64_t max_sequence_tokens() const { return service_options_.max_sequence_tokens; }
  const std::optional<Int8Error>& int8_error() const { return models_.int8_error(); }

 private:
  RankModels models_;
  generate::ServiceOptions service_options_;
};

}  // namespace collimate::cli
