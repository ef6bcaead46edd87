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

// CompletionOptions say how completions are made, from the command line and from Python.
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
  generate::SamplingParams params;  // `sampling` and max_tokens, with top_log_probs and timeout
  int64_t samples = 1;
  uint64_t seed = 0;
  bool log_probs = false;
  int64_t top_log_probs = 0;
  double timeout = 0;     // seconds; 0: none
  rlhf::RowSection rows;  // how rows of `data` are treated
  bool download = false;
  bool stats = false;
  bool json = false;
};

// A CompletingModel is the model of a call, a directory or a name on a hub, loaded on the call's devices with all that
// completing prompts needs. Use it from one thread.
class CompletingModel {
 public:
  explicit CompletingModel(const GenerateCall& call);

  const text::Renderer& renderer() const { return models_.first().renderer; }
  const text::Tokenizer& tokenizer() const { return *models_.first().tokenizer; }
  int64_t positions() const { return models_.first().model.shape().positions(); }
  const std::optional<Int8Error>& int8_error() const { return models_.int8_error(); }
  // Returns the completions from number `first` on and shows a progress bar. Calls `on_completion`, if not empty, with
  // each of them in order, from one thread at a time. Writes what the engine counted to `stats`.
  std::vector<generate::Completion> complete(const std::vector<std::vector<int32_t>>& prompts, int64_t first,
                                             const std::function<void(const generate::Completion&)>& on_completion,
                                             generate::ServiceStats& stats);

 private:
  const GenerateCall& call_;
  RankModels models_;
};

// Returns {"completion", "token_ids", "finish"}, with "score" after a beam search and, where the call asks, log-probs.
nlohmann::ordered_json completion_json(const GenerateCall& call, const text::Tokenizer& tokenizer,
                                       const std::vector<int32_t>& prompt, const generate::Completion& completion);

// Returns the completion in the form that rewards read, for a row with these columns.
rlhf::RewardSample reward_sample(const text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                 const generate::Completion& completion, const nlohmann::json& columns);

// Writes call.output: one line for each completion of the data, in order, with its reward unless `rewards` (a list as
// rewards_of() returns it) is null. Goes on where the file ends (see RowsFile).
void generate_rows(const GenerateCall& call, PromptRows& prompts, const nlohmann::json& rewards);

}  // namespace collimate::cli
