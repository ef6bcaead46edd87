#include "collimate/generate/sampler_stages.h"

#include <algorithm>
#include <limits>

namespace collimate::generate {
namespace {

using Params = SamplingParams;
using History = LogitHistory;
using tensor::LogitEdit;
using Edits = std::vector<LogitEdit>;

// vLLM's min_tokens sets the logit of each token that would end the request too early to -infinity.
bool too_early(const Params& params, const History& history) { return history.completion_tokens < params.min_tokens; }

void forbid_ends(const Params&, const History& history, Edits& edits) {
  for (const int32_t id : history.ends) edits.push_back({id, LogitEdit::Kind::kForbid});
}

// OpenAI's logit_bias is added to the logits.
bool has_bias(const Params& params, const History&) { return !params.logit_bias.empty(); }

void add_bias(const Params& params, const History&, Edits& edits) {
  for (const auto& [id, bias] : params.logit_bias) edits.push_back({id, LogitEdit::Kind::kSubtract, -bias});
}

// The repetition penalty is that of CTRL (Keskar et al. 2019, arXiv:1909.05858, section 4.1), for tokens of prompt and
// completion as in vLLM and transformers. A logit below zero is multiplied, so that a penalty above 1 always makes a
// token less likely.
bool penalizes_repetition(const Params& params, const History&) { return params.repetition_penalty != 1.0; }

void penalize_repetition(const Params& params, const History& history, Edits& edits) {
  for (const auto& [id, count] : history.generated)
    edits.push_back({id, LogitEdit::Kind::kPenalize, params.repetition_penalty});
}

// OpenAI's formula, for generated tokens only, is mu[j] - c[j] * alpha_frequency - float(c[j] > 0) * alpha_presence.
bool penalizes_generated(const Params& params, const History&) {
  return params.frequency_penalty != 0.0 || params.presence_penalty != 0.0;
}

void penalize_generated(const Params& params, const History& history, Edits& edits) {
  for (const auto& [id, count] : history.generated)
    if (count > 0)
      edits.push_back({id, LogitEdit::Kind::kSubtract, count * params.frequency_penalty, params.presence_penalty});
}

constexpr LogitStage kStages[] = {
    {"min_tokens", too_early, forbid_ends},
    {"logit_bias", has_bias, add_bias},
    {"repetition_penalty", penalizes_repetition, penalize_repetition},
    {"frequency_and_presence_penalty", penalizes_generated, penalize_generated},
};

}  // namespace

void LogitHistory::start(const SamplingParams& params, std::span<const int32_t> eos_ids, std::span<const int32_t> ids,
                         int64_t prompt_tokens) {
  generated.clear();
  ends.clear();
  completion.clear();
  if (params.min_tokens > 0) ends = ending_ids(params, eos_ids);
  counts = penalizes_repetition(params, *this) || penalizes_generated(params, *this);
  completion_tokens = 0;
  if (counts) {
    for (const int32_t id : ids.first(prompt_tokens)) generated.try_emplace(id, 0);
  }
  for (const int32_t id : ids.subspan(prompt_tokens)) append(id);
}

void LogitHistory::append(int32_t token) {
  ++completion_tokens;
  if (counts) ++generated[token];
  if (constraint) completion.push_back(token);
}

std::span<const uint32_t> LogitHistory::allowed() const {
  return constraint ? constraint->allowed_after(completion) : std::span<const uint32_t>();
}

std::vector<int32_t> ending_ids(const SamplingParams& params, std::span<const int32_t> eos_ids) {
  std::vector<int32_t> ids(eos_ids.begin(), eos_ids.end());
  ids.insert(ids.end(), params.stop_ids.begin(), params.stop_ids.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::span<const LogitStage> logit_stages() { return kStages; }

std::vector<tensor::LogitEdit> logit_edits(const SamplingParams& params, const LogitHistory& history) {
  std::vector<tensor::LogitEdit> edits;
  for (const LogitStage& stage : logit_stages())
    if (stage.active(params, history)) stage.add_edits(params, history, edits);
  return edits;
}

}  // namespace collimate::generate
