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
#include "collimate/generate/sampling_options.h"
#include "collimate/generate/step_options.h"

namespace collimate::cli {

// ModelOptions say how `serve` and `chat` load a model and generate with it.
struct ModelOptions : base::Section, InferenceOptions {
  ModelOptions() : InferenceOptions(this) {}

  COLLIMATE_OPTION(
      int64_t, max_sequence_tokens, 0, "tokens",
      "most tokens of a prompt and its completion; 0 takes the model's positions, or what the cache holds of them",
      base::at_least(int64_t{0}));
  generate::CacheBlocksOption cache_blocks{this, ", up to 4 GiB"};
  MeasureInt8Option measure_int8{this};
  COLLIMATE_OPTION(std::string, generation_config, "auto", "",
                   "auto draws as the model's generation_config.json says (temperature, top_p, top_k, min_p, "
                   "repetition_penalty, do_sample) where you say nothing else; none does not read these",
                   base::one_of({"auto", "none"}));
};

// Gives the options that the user has not set the values of the model's generation_config.json, unless
// `options.generation_config` says none, and logs which values these are. Throws InputError as
// generate::take_model_sampling() does.
void take_model_sampling(const std::string& directory, const ModelOptions& options, generate::SamplingOptions& asked);

// A LoadedModel is a model directory loaded on the devices of a layout, with all that generating needs. Only one thread
// may use it at a time.
class LoadedModel {
 public:
  // Takes the limits of a step from `service`. Throws InputError when the directory holds no model.
  LoadedModel(const std::string& directory, const ModelOptions& options, const LayoutOptions& layout,
              generate::ServiceOptions service);

  // Returns a new service, which refers to this object.
  std::unique_ptr<generate::Completer> service();
  // Returns an object that scores a prompt's tokens. Throws InputError as PromptScore does.
  std::unique_ptr<PromptScoreRanks> prompt_score(std::span<const int32_t> ids,
                                                 const generate::SamplingParams& sampling);
  const text::Renderer& renderer() const { return models_.first().renderer; }
  // Returns the most tokens of prompt and completion together, which is never more than the cache holds.
  int64_t max_sequence_tokens() const { return service_options_.max_sequence_tokens; }
  const std::optional<Int8Error>& int8_error() const { return models_.int8_error(); }

 private:
  RankModels models_;
  generate::ServiceOptions service_options_;
};

}  // namespace collimate::cli
