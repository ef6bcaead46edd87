#pragma once

#include <cstdint>
#include <span>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"
#include "collimate/train/scoring.h"

namespace collimate::train {

// How the log-probs that generation reported differ from those that training computes. Only tokens whose recorded
// weights version is the present one can be compared; the others are counted. A NaN differs by infinity.
struct Mismatch {
  int64_t tokens_compared = 0;
  int64_t tokens_other_version = 0;
  double log_prob_abs_max = 0;
  double log_prob_abs_sum = 0;
  model::RouterAgreement routes;  // with what a mixture's routers chose in generation
};

// Adds the comparison of `log_probs`, [M] of the rows' trainable tokens by weights of `version`, with the columns
// log_probs and weights_version; nothing for rows without them. Where the rows have old_log_probs, which are computed
// again as sampling rounded on purpose, with those instead.
void compare(const Batch& rows, std::span<const float> log_probs, uint64_t version, Mismatch& mismatch);

// Adds what a pass over all of the rows compared, unless other weights drew any of their tokens.
void compare(const Batch& rows, const model::RouterAgreement& routes, uint64_t version, Mismatch& mismatch);

// Gives what all context ranks have compared, of which each one has the choices for its tokens. They call it together.
model::RouterAgreement sum_agreement(const model::ContextRanks& ranks, const model::RouterAgreement& mine);

// Compares by a forward that serves nothing else. Blocking.
Mismatch check(model::Model& model, const Batch& rows, ScoringOptions options);

}  // namespace collimate::train
