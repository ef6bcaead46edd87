#include "collimate/train/scoring.h"

#include "collimate/base/at.h"
#include "collimate/base/fault.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/tensor/results.h"
#include "collimate/train/head_rows.h"

namespace collimate::train {
namespace {

// The hidden states that a head reads on this rank, and which tokens' they are.
struct HeadInput {
  HeadRows rows;
  at::Tensor hidden;
};

// Values that the last pipeline stage has become known to all.
void share_last(const model::StageRanks& stages, std::vector<float>& values) {
  if (!stages.several()) return;
  values.resize(static_cast<size_t>(stages.sum(std::vector{static_cast<double>(values.size())}).front()));
  stages.share_last(values);
}

// Runs `values_of(packed, head input)`, of the tokens that `read` names in packed rows, over the rows in micro-batches,
// which pass the stages of a pipeline one behind the other, and gives each row with its number and the values from its
// own on to `take`, which returns how many are the row's.
template <class Values, class Take>
void for_each_row(model::Model& model, const Batch& rows, const ScoringOptions& options,
                  std::vector<int64_t> PackedRows::*read, Values values_of, Take take) {
  const base::FaultPhase phase("scoring");
  const std::vector<int64_t> order = row_order(rows);
  const Batch sorted = rows.gather(order);
  const model::StageRanks& stages = model.weights().stages();
  std::vector<float> values;  // of all rows, in this order
  const std::vector<RowRange> ranges = split_rows(sorted, options.micro_batch_tokens, 1, options.micro_batch_rows);
  const int64_t passes = model.weights().passes_of_all(std::ssize(ranges));
  for (const RowRange& range : ranges) {
    PackedRows packed = pack_rows(sorted.slice(range.begin, range.end), options.routes, options.context);
    packed.tokens.agreement = options.agreement;
    const at::Tensor hidden = model.forward(packed.tokens);
    const auto head = model.hold_head();
    if (stages.place.is_last()) {
      HeadInput input{HeadRows(packed.*read, packed.tokens.cut), {}};
      input.hidden = hidden.index_select(0, tensor::tensor_beside(hidden, input.rows.rows()));
      const at::Tensor of_rows = input.rows.gather(model.exec(), values_of(packed, input));
      const tensor::HostTensor on_host(model.exec(), of_rows);
      values.insert(values.end(), on_host.floats().begin(), on_host.floats().end());
    }
    if (options.progress) options.progress();
  }
  for (int64_t i = std::ssize(ranges); i < passes; ++i) {  // other ranks have more rows
    model.forward({.starts = {0}});
    model.hold_head();
  }
  share_last(stages, values);
  const float* next = values.data();
  for (const int64_t r : order) next += take(r, next);
}

// A column of one number per trainable token, at its place in rows of [L] with 0 elsewhere.
template <class Values>
Batch with_token_values(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options,
                        Values values_of) {
  std::vector<std::vector<float>> column(static_cast<size_t>(rows.rows()));
  for_each_row(model, rows, options, &PackedRows::predictors, values_of, [&](int64_t r, const float* values) {
    const float* next = values;
    for (uint8_t trainable : rows.row(batch::kTrainable, r))
      base::at(column, r).push_back(trainable != 0 ? *next++ : 0.F);
    return next - values;
  });
  Batch out = rows;
  out.set_ragged(key, column);
  return out;
}

}  // namespace

Batch with_log_probs(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options) {
  return with_token_values(model, rows, key, options, [&](const PackedRows& packed, const HeadInput& input) {
    return model.log_probs({input.hidden, input.rows.own(packed.targets), options.temperature}).log_probs;
  });
}

Batch with_values(model::Model& model, const Batch& rows, const ScoringOptions& options) {
  return with_token_values(model, rows, batch::kValues, options,
                           [&](const PackedRows&, const HeadInput& input) { return model.scores(input.hidden); });
}

Batch with_scores(model::Model& model, const Batch& rows, const ScoringOptions& options) {
  std::vector<float> scores(static_cast<size_t>(rows.rows()));
  const auto scores_of = [&](const PackedRows&, const HeadInput& input) { return model.scores(input.hidden); };
  for_each_row(model, rows, options, &PackedRows::last_tokens, scores_of, [&](int64_t r, const float* score) {
    base::at(scores, r) = *score;
    return 1;
  });
  Batch out = rows;
  out.set(batch::kScore, scores);
  return out;
}

}  // namespace collimate::train
