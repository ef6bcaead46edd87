#include "collimate/train/scoring.h"

#include "collimate/batch/standard_keys.h"
#include "collimate/train/micro_batch.h"

namespace collimate::train {
namespace {

at::Tensor select(const at::Tensor& hidden, const std::vector<int64_t>& indices) {
  return hidden.index_select(0, index_tensor(indices));
}

// One number per trainable token, put at its place in rows of [L] with 0 elsewhere.
void spread(const Batch& rows, const float* values, std::vector<std::vector<float>>& out) {
  for (int64_t r = 0; r < rows.rows(); ++r) {
    std::vector<float> row;
    for (uint8_t trainable : rows.row(batch::kTrainable, r)) row.push_back(trainable != 0 ? *values++ : 0.F);
    out.push_back(std::move(row));
  }
}

// Runs `body(part, packed, hidden)` over the rows in micro-batches.
template <class Body>
void for_each_part(model::Model& model, const Batch& rows, const ScoringOptions& options, Body body) {
  for (const RowRange& range : split_rows(rows, options.micro_batch_tokens, 1)) {
    const Batch part = rows.slice(range.begin, range.end);
    const PackedRows packed = pack_rows(part);
    body(part, packed, model.forward(packed.tokens));
  }
}

}  // namespace

Batch with_log_probs(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options) {
  std::vector<std::vector<float>> columns;
  for_each_part(model, rows, options, [&](const Batch& part, const PackedRows& packed, const at::Tensor& hidden) {
    const model::LogProbResult result =
        model.log_probs({select(hidden, packed.predictors), packed.targets, options.temperature});
    spread(part, result.log_probs.const_data_ptr<float>(), columns);
  });
  Batch out = rows;
  out.set_ragged(key, columns);
  return out;
}

Batch with_values(model::Model& model, const Batch& rows, const ScoringOptions& options) {
  std::vector<std::vector<float>> columns;
  for_each_part(model, rows, options, [&](const Batch& part, const PackedRows& packed, const at::Tensor& hidden) {
    spread(part, model.scores(select(hidden, packed.predictors)).const_data_ptr<float>(), columns);
  });
  Batch out = rows;
  out.set_ragged(batch::kValues, columns);
  return out;
}

Batch with_scores(model::Model& model, const Batch& rows, const ScoringOptions& options) {
  std::vector<float> scores;
  for_each_part(model, rows, options, [&](const Batch&, const PackedRows& packed, const at::Tensor& hidden) {
    const at::Tensor part = model.scores(select(hidden, packed.last_tokens));
    scores.insert(scores.end(), part.const_data_ptr<float>(), part.const_data_ptr<float>() + part.numel());
  });
  Batch out = rows;
  out.set(batch::kScore, scores);
  return out;
}

}  // namespace collimate::train
