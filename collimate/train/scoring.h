#pragma once

#include <functional>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"
#include "collimate/train/micro_batch.h"

namespace collimate::train {

struct ScoringOptions {
  float temperature = 1.0F;
  int64_t micro_batch_tokens = 2048;
  int64_t micro_batch_rows = 0;         // at most so many rows, too; 0: any number
  std::function<void()> progress = {};  // called after every micro-batch
  RecordedRoutes routes = RecordedRoutes::kIgnored;
  model::RouterAgreement* agreement = nullptr;  // as of TokenBatch: of this rank's tokens
  model::ContextRanks context = {};             // these call together, with the same rows; each gets all values
};

// Log-probs [L] of the trainable tokens, 0 elsewhere, as column `key` added to the rows; and their entropy when asked.
// No gradients; the same bits as generation and training (equality domain).
Batch with_log_probs(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options);
// The model's distribution of each trainable token as a teacher's columns have it (teacher_keys.h): its `count` most
// likely tokens, at most the vocabulary's.
Batch with_teacher_lists(model::Model& model, const Batch& rows, int64_t count, const ScoringOptions& options);
// By the rows' own lists, the model's log-probs of their tokens and of all others together, as these columns.
struct ListedKeys {
  Key<float> log_probs, rest;
};
Batch with_listed(model::Model& model, const Batch& rows, const ListedKeys& keys, const ScoringOptions& options);
// Value head at the state before each trainable token, as column `values`.
Batch with_values(model::Model& model, const Batch& rows, const ScoringOptions& options);
// Score head at each row's last token, as column `score`.
Batch with_scores(model::Model& model, const Batch& rows, const ScoringOptions& options);

}  // namespace collimate::train
