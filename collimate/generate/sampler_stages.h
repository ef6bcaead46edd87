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

// The stages look at this beside a request's parameters. It is a function of its prompt and the tokens it has so far,
// so that preemption, forks, save and load have nothing of it to keep. Stays empty for a request that needs none of it.
struct LogitHistory {
  std::unordered_map<int32_t, int32_t> generated;  // how often, by token of the prompt (perhaps 0) or the completion
  std::vector<int32_t> ends;                       // forbidden before min_tokens: end of sequence and stop ids
  int64_t completion_tokens = 0;
  bool counts = false;  // some penalty looks at `generated`
  // The completion has to be this; null: anything. Copies of a history share it: it is where it was asked last.
  std::shared_ptr<text::Constraint> constraint;
  std::vector<int32_t> completion;  // where there is a constraint

  // Starts the history of a request that has `ids`, of which the first `prompt_tokens` are its prompt.
  void start(const SamplingParams& params, std::span<const int32_t> eos_ids, std::span<const int32_t> ids,
             int64_t prompt_tokens);
  void append(int32_t token);
  // The bits of Constraint::allowed_after the completion; empty without one, or where nothing may follow.
  std::span<const uint32_t> allowed() const;
  bool stuck() const { return constraint != nullptr && allowed().empty(); }
};

// Ids that min_tokens forbids, ascending without repeats. As in vLLM ignore_eos makes no difference.
std::vector<int32_t> ending_ids(const SamplingParams& params, std::span<const int32_t> eos_ids);

// A stage says which logits of a row change, ahead of temperature and truncation.
struct LogitStage {
  const char* name;
  bool (*active)(const SamplingParams& params, const LogitHistory& history);
  void (*add_edits)(const SamplingParams& params, const LogitHistory& history, std::vector<tensor::LogitEdit>& edits);
};

// min_tokens, logit_bias, repetition_penalty, frequency_and_presence_penalty: in the order in which vLLM applies them
// (vllm/v1/sample/sampler.py).
std::span<const LogitStage> logit_stages();

// Gives the edits of the active stages for the next token, in order.
std::vector<tensor::LogitEdit> logit_edits(const SamplingParams& params, const LogitHistory& history);

}  // namespace collimate::generate
