#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/text/tokenizer.h"
#include "collimate/train/scoring.h"

namespace collimate::rlhf {

// Says how the scores that a process reward model gives the steps of a completion become the completion's reward.
struct StepJudgement {
  std::string of = "last";       // last, min, mean or product: which number of the steps' probabilities
  std::string separator = "\n";  // what ends a step
  int64_t longest_tokens = 0;    // no row gets longer by a separator of its own; 0: no limit
};

// Returns the number of these probabilities, of which there is at least one.
double reward_of_steps(const StepJudgement& reward, const std::vector<double>& probabilities);

// Holds a completion as a process reward model reads it.
struct StepsOfCompletion {
  std::vector<int32_t> ids;   // of prompt and completion, without the token that ended it
  std::vector<uint8_t> ends;  // 1 at the last token of each step
};

// Divides a completion, the tokens of a row behind its first `prompt_tokens`, into steps. A step has a character that
// is no white space, and ends with the token in which its separator ends. A last step without a separator gets one, as
// has a completion that says nothing, which is one step; where the row would be longer than the longest, the step ends
// with its last token instead.
StepsOfCompletion steps_of_completion(std::span<const int32_t> ids, int64_t prompt_tokens,
                                      const text::Tokenizer& tokenizer, const StepJudgement& reward);

// Returns the rows with `reward`, by the probabilities that the steps of their completions are right. Reads uid, ids
// and prompt_tokens.
Batch with_step_rewards(model::Model& model, const text::Tokenizer& tokenizer, const StepJudgement& reward,
                        const Batch& rows, const train::ScoringOptions& options);

}  // namespace collimate::rlhf
