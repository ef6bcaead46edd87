#pragma once

#include <cstdint>
#include <span>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"
#include "collimate/train/scoring.h"

namespace collimate::train {

// Says how the log-probs that generation reported differ from those that training computes. Only tokens whose recorded
// weights version is the present one can be compared; the others are counted. A NaN differs by infinity.
struct Mismatch {
  int64_t tokens_compared = 0;
  int64_t tokens_other_version = 0;
  double log_prob_abs_max = 0;
  double log_prob_abs_sum = 0;
  model::RouterAgreement routes;  // of a mixture's routers with their choices in generation
};

// Compares `log_probs` [M] of the rows' trainable tokens, by weights of `version`, with the columns log_probs and
// weights_version, and adds the result to `mismatch`. Adds nothing for rows without these columns. Rows have
// old_log_probs where sampling rounded on purpose and their log-probs were computed again; then it compares with those.
void compare(const Batch& rows, std::span<const float> log_probs, uint64_t version, Mismatch& mismatch);

// Adds what a pass over all of the rows compared, unless weights of another version drew any of their tokens.
void compare(const Batch& rows, const model::RouterAgreement& routes, uint64_t version, Mismatch& mismatch);

// Returns the sum of what all context ranks have compared, each for its own tokens. All of them call it together.
model::RouterAgreement sum_agreement(const model::ContextRanks& ranks, const model::RouterAgreement& mine);

// Compares rows by a forward that serves nothing else. Blocks.
Mismatch check(model::Model& model, const Batch& rows, ScoringOptions options);

}  // namespace collimate::train
