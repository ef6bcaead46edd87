#pragma once

#include <functional>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"
#include "collimate/train/micro_batch.h"

namespace collimate::train {

struct ScoringOptions {
  float temperature = 1.0F;
  int64_t micro_batch_tokens = 2048;
  int64_t micro_batch_rows = 0;         // a micro-batch has at most so many rows, too; 0: any number
  std::function<void()> progress = {};  // called after every micro-batch
  RecordedRoutes routes = RecordedRoutes::kIgnored;
  model::RouterAgreement* agreement = nullptr;  // TokenBatch::agreement, of this rank's tokens
  model::ContextRanks context = {};             // these call together, with the same rows; each gets all values
};

// Returns the rows with column `key` added: log-probs [L] of the trainable tokens, 0 elsewhere. No gradients; the same
// bits as generation and training (equality domain).
Batch with_log_probs(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options);
// Returns the rows with a teacher's columns added (teacher_keys.h), by which the model is the teacher: for each
// trainable token its `count` most likely tokens, at most the whole vocabulary.
Batch with_teacher_lists(model::Model& model, const Batch& rows, int64_t count, const ScoringOptions& options);
// with_listed() returns the rows with these columns added: the model's log-probs of the tokens in the rows' own lists
// (kTeacherIds), and the log-prob of all other tokens together.
struct ListedKeys {
  Key<float> log_probs, rest;
};
Batch with_listed(model::Model& model, const Batch& rows, const ListedKeys& keys, const ScoringOptions& options);
// Returns the rows with column `values` added: the value head's output at the state before each trainable token.
Batch with_values(model::Model& model, const Batch& rows, const ScoringOptions& options);
// Returns the rows with column `key` added: the score head's output at each trainable token.
Batch with_token_scores(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options);
// Returns the rows with column `score` added: the score head's output at each row's last token.
Batch with_scores(model::Model& model, const Batch& rows, const ScoringOptions& options);

}  // namespace collimate::train
