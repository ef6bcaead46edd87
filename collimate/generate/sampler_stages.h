#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/tensor/ops/sample.h"
#include "collimate/text/constraint/constraint.h"

namespace collimate::generate {

// The history of a request, which the stages read beside its parameters. It follows from the request's parameters,
// prompt and tokens so far, so that preemption, forks, save and load need not keep it. Its lists stay empty for a
// request that does not need them.
struct LogitHistory {
  std::unordered_map<int32_t, int32_t> generated;  // by token of prompt or completion: how often the latter has it
  std::vector<int32_t> ends;                       // forbidden before min_tokens: end of sequence and stop ids
  int64_t completion_tokens = 0;
  bool counts = false;  // some penalty reads `generated`
  // The form that the completion must have; null: any. Copies of a history share the constraint, whose own state is
  // that of the last question.
  std::shared_ptr<text::Constraint> constraint;
  std::vector<int32_t> completion;  // empty without a constraint

  // Starts the history of a request that has `ids`, of which the first `prompt_tokens` are its prompt.
  void start(const SamplingParams& params, std::span<const int32_t> eos_ids, std::span<const int32_t> ids,
             int64_t prompt_tokens);
  void append(int32_t token);
  // Returns the bits of the tokens that may follow (Constraint::allowed_after); empty without a constraint, or if none
  // may follow.
  std::span<const uint32_t> allowed() const;
  bool stuck() const { return constraint != nullptr && allowed().empty(); }
};

// Returns the ids that min_tokens forbids, ascending and without repeats. As in vLLM ignore_eos makes no difference.
std::vector<int32_t> ending_ids(const SamplingParams& params, std::span<const int32_t> eos_ids);

// A stage edits some logits of a row before temperature and truncation.
struct LogitStage {
  const char* name;
  bool (*active)(const SamplingParams& params, const LogitHistory& history);
  void (*add_edits)(const SamplingParams& params, const LogitHistory& history, std::vector<tensor::LogitEdit>& edits);
};

// Returns the stages min_tokens, logit_bias, repetition_penalty and frequency_and_presence_penalty, in the order in
// which vLLM applies them (vllm/v1/sample/sampler.py).
std::span<const LogitStage> logit_stages();

// Returns the edits of the active stages for the next token, in order.
std::vector<tensor::LogitEdit> logit_edits(const SamplingParams& params, const LogitHistory& history);

}  // namespace collimate::generate
