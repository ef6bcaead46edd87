#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/cli/judges.h"
#include "collimate/cli/layout_options.h"
#include "collimate/cli/prompt_rows.h"
#include "collimate/cli/rank_models.h"
#include "collimate/generate/beam_options.h"
#include "collimate/generate/engine.h"
#include "collimate/generate/sampling_options.h"

namespace collimate::cli {

// How completions are made, from the command line and from Python.
struct CompletionOptions : generate::SamplingOptions, InferenceOptions {
  CompletionOptions() : InferenceOptions(this) {}

  generate::BeamOptions beams{this};
};

struct DrawOptions : CompletionOptions {
  MeasureInt8Option measure_int8{this};
};

// A GenerateCall holds the arguments of `collimate generate`.
struct GenerateCall {
  std::string model, prompt, data, output;
  std::vector<std::string> rewards;
  DrawOptions sampling;
  LayoutOptions layout;
  int64_t max_tokens = generate::SamplingParams().max_tokens;
  generate::SamplingParams params;  // the two above
  int64_t samples = 1;
  uint64_t seed = 0;
  bool log_probs = false;
  int64_t top_log_probs = 0;
  double timeout = 0;     // seconds; 0: none
  rlhf::RowSection rows;  // of data
  bool download = false;
  bool stats = false;
  bool json = false;
};

// A model directory, a hub's name of it included, with what completing prompts by it needs, on the call's devices. One
// thread.
class CompletingModel {
 public:
  explicit CompletingModel(const GenerateCall& call);

  const text::Renderer& renderer() const { return models_.first().renderer; }
  const text::Tokenizer& tokenizer() const { return *models_.first().tokenizer; }
  int64_t positions() const { return models_.first().model.shape().positions(); }
  const std::optional<Int8Error>& int8_error() const { return models_.int8_error(); }
  // Completions from `first` on, with a progress bar. `on_completion` is told of them in order, by one thread at a
  // time. What the engine counted goes to `stats`.
  std::vector<generate::Completion> complete(const std::vector<std::vector<int32_t>>& prompts, int64_t first,
                                             const std::function<void(const generate::Completion&)>& on_completion,
                                             generate::ServiceStats& stats);

 private:
  const GenerateCall& call_;
  RankModels models_;
};

// {"completion", "token_ids", "finish"}, of searched ones their score and, where asked, log-probs.
nlohmann::ordered_json completion_json(const GenerateCall& call, const text::Tokenizer& tokenizer,
                                       const std::vector<int32_t>& prompt, const generate::Completion& completion);

// A completion as rewards see it, of a row that has these columns.
rlhf::RewardSample reward_sample(const text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                 const generate::Completion& completion, const nlohmann::json& columns);

// Writes call.output: a line for each completion of the data, in order, with its reward where `rewards`, a list, is not
// null. Goes on where the file ends (see RowsFile).
void generate_rows(const GenerateCall& call, PromptRows& prompts, const nlohmann::json& rewards);

}  // namespace collimate::cli
