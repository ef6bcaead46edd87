#include "collimate/train/scoring.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/teacher_keys.h"
#include "collimate/tensor/results.h"
#include "collimate/train/head_rows.h"
#include "collimate/train/pipeline.h"

namespace collimate::train {
namespace {

// Holds the hidden states that a head reads on this rank, and says which tokens they are of.
struct HeadInput {
  HeadRows rows;
  at::Tensor hidden;
};

// Makes values that the last pipeline stage has known to all stages.
void share_last(const model::StageRanks& stages, std::vector<float>& values) {
  if (!stages.several()) return;
  values.resize(static_cast<size_t>(stages.sum(std::vector{static_cast<double>(values.size())}).front()));
  stages.share_last(values);
}

int64_t own_tokens_of(const model::TokenBatch& tokens) {
  return tokens.cut == nullptr ? std::ssize(tokens.ids) : tokens.cut->own_rows();
}

// Takes packed micro-batches, which pack(number) makes, forward through the stages of a pipeline, one behind the other,
// and calls done(number, packed, hidden states) for each; the hidden states are those of the last stage.
template <class Pack, class Done>
void for_each_pass(model::Model& model, int64_t passes, Pack pack, Done done) {
  const model::StageRanks& stages = model.weights().stages();
  if (stages.place.runs == 1) {
    for (int64_t pass = 0; pass < passes; ++pass) {
      const PackedRows packed = pack(pass);
      done(pass, packed, model.forward(packed.tokens));
    }
    return;
  }
  const int runs = stages.place.runs;
  std::map<std::pair<int64_t, int>, at::Tensor> streams;  // received or made, by pass and run
  std::map<int64_t, PackedRows> packed;                   // of passes under way
  for (const StageStep& step : interleaved_forwards({stages.place.rank, stages.place.ranks, runs}, passes)) {
    if (!packed.contains(step.micro_batch)) packed.emplace(step.micro_batch, pack(step.micro_batch));
    const PackedRows& of_pass = packed.at(step.micro_batch);
    at::Tensor& stream = streams[{step.micro_batch, step.run}];
    if (step.act == StageAct::kForward) stream = model.forward_run(of_pass.tokens, step.run, stream);
    if (step.act == StageAct::kSend) stages.send(model.exec(), tensor::device_data(stream), stream.numel(), 1);
    if (step.act == StageAct::kReceive) {
      stream = tensor::empty_result(model.exec(), {own_tokens_of(of_pass.tokens), model.stream_width()});
      stages.receive(model.exec(), tensor::device_data(stream), stream.numel(), -1);
      continue;
    }
    const bool has_ended = step.run + 1 == runs;
    if (step.act == StageAct::kForward && has_ended) done(step.micro_batch, of_pass, stream);
    if (step.act == StageAct::kForward && !(has_ended && model.ends(step.run))) continue;
    streams.erase({step.micro_batch, step.run});  // has been sent, or has ended
    if (has_ended) packed.erase(step.micro_batch);
  }
}

// Runs `values_of(rows, packed, head input)` over the rows in micro-batches, which pass the stages of a pipeline one
// behind the other. The head input is of the tokens that `read` names in the packed rows. Then calls `take(row number,
// values)` for each row; its values are the first ones there, and `take` returns how many they are.
template <class Values, class Take>
void for_each_row(model::Model& model, const Batch& rows, const ScoringOptions& options,
                  std::vector<int64_t> PackedRows::*read, Values values_of, Take take) {
  const base::FaultPhase phase("scoring");
  const std::vector<int64_t> order = row_order(rows);
  const Batch sorted = rows.gather(order);
  const model::StageRanks& stages = model.weights().stages();
  std::vector<float> values;  // of all rows, in the order of `sorted`
  const std::vector<RowRange> ranges = split_rows(sorted, options.micro_batch_tokens, 1, options.micro_batch_rows);
  const int64_t passes = model.weights().passes_of_all(std::ssize(ranges));
  const auto rows_of = [&](int64_t pass) {
    if (pass >= std::ssize(ranges)) return sorted.slice(0, 0);  // other ranks have more rows
    return sorted.slice(base::at(ranges, pass).begin, base::at(ranges, pass).end);
  };
  const auto pack = [&](int64_t pass) {
    if (pass >= std::ssize(ranges)) return PackedRows{.tokens = {.starts = {0}}};
    PackedRows packed = pack_rows(rows_of(pass), options.routes, options.context);
    packed.tokens.agreement = options.agreement;
    return packed;
  };
  for_each_pass(model, passes, pack, [&](int64_t pass, const PackedRows& packed, const at::Tensor& hidden) {
    const auto head = model.hold_head();
    if (pass >= std::ssize(ranges)) return;
    if (stages.place.is_last()) {
      HeadInput input{HeadRows(packed.*read, packed.tokens.cut), {}};
      input.hidden = hidden.index_select(0, tensor::tensor_beside(hidden, input.rows.rows()));
      const at::Tensor of_rows = input.rows.gather(model.exec(), values_of(rows_of(pass), packed, input)).contiguous();
      const tensor::HostTensor on_host(model.exec(), of_rows);
      values.insert(values.end(), on_host.floats().begin(), on_host.floats().end());
    }
    if (options.progress) options.progress();
  });
  share_last(stages, values);
  const float* next = values.data();
  for (const int64_t r : order) next += take(r, next);
}

// Collects the columns of listed tokens, by row, from the numbers of each trainable token.
struct TokenNumbers {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> log_probs, rest;

  explicit TokenNumbers(int64_t rows) : ids(rows), log_probs(rows), rest(rows) {}
  // Adds the next token of row r: [ids, log-probs, rest], or without ids. Returns where the token after it begins.
  const float* add(int64_t r, const float* next, int64_t count, bool has_ids) {
    if (has_ids) {
      std::transform(next, next + count, std::back_inserter(base::at(ids, r)),
                     [](float id) { return static_cast<int32_t>(id); });
      next += count;
    }
    base::at(log_probs, r).insert(base::at(log_probs, r).end(), next, next + count);
    base::at(rest, r).push_back(next[count]);
    return next + count + 1;
  }
};

int64_t trained_tokens(const Batch& rows, int64_t r) {
  const auto trainable = rows.row(batch::kTrainable, r);
  return std::ranges::count_if(trainable, [](uint8_t one) { return one != 0; });
}

// Returns log-probs of the listed tokens of each trainable token. Where the rows have no lists, the model's own most
// likely tokens are listed.
TokenNumbers listed_numbers(model::Model& model, const Batch& rows, int64_t count, const ScoringOptions& options) {
  const bool own = !rows.has(batch::kTeacherIds.name);
  const auto values_of = [&](const Batch& some, const PackedRows& packed, const HeadInput& input) {
    model::LogProbRequest request{input.hidden, input.rows.own(packed.targets), options.temperature};
    request.listed_count = count;
    if (!own) request.listed_ids = input.rows.own(batch::of_trained_tokens(some, batch::kTeacherIds), count);
    const model::LogProbResult result = model.log_probs(request);
    std::vector<at::Tensor> parts = {result.listed, result.rest.unsqueeze(1)};
    if (own) parts.insert(parts.begin(), result.listed_ids.to(at::kFloat));
    return at::cat(parts, 1);
  };
  TokenNumbers numbers(rows.rows());
  for_each_row(model, rows, options, &PackedRows::predictors, values_of, [&](int64_t r, const float* values) {
    const float* next = values;
    for (int64_t t = trained_tokens(rows, r); t > 0; --t) next = numbers.add(r, next, count, own);
    return next - values;
  });
  return numbers;
}

// Adds a column [L] with one number per trainable token, at the token's place, and 0 elsewhere.
template <class Values>
Batch with_token_values(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options,
                        Values values_of, std::vector<int64_t> PackedRows::*places = &PackedRows::predictors) {
  std::vector<std::vector<float>> column(static_cast<size_t>(rows.rows()));
  for_each_row(model, rows, options, places, values_of, [&](int64_t r, const float* values) {
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
  return with_token_values(
      model, rows, key, options, [&](const Batch&, const PackedRows& packed, const HeadInput& input) {
        return model.log_probs({input.hidden, input.rows.own(packed.targets), options.temperature}).log_probs;
      });
}

Batch with_teacher_lists(model::Model& model, const Batch& rows, int64_t count, const ScoringOptions& options) {
  COLLIMATE_CHECK(model.shape().vocabulary < int64_t{1} << 24, "ids pass as floats");
  const int64_t listed = std::min(count, model.shape().vocabulary);
  const TokenNumbers numbers = listed_numbers(model, rows, listed, options);
  Batch out = rows;
  out.set_ragged(batch::of_width(batch::kTeacherIds, listed), numbers.ids);
  out.set_ragged(batch::of_width(batch::kTeacherLogProbs, listed), numbers.log_probs);
  out.set_ragged(batch::kTeacherRest, numbers.rest);
  return out;
}

Batch with_listed(model::Model& model, const Batch& rows, const ListedKeys& keys, const ScoringOptions& options) {
  const int64_t listed = rows.column(batch::kTeacherIds.name).schema.inner.at(0);
  const TokenNumbers numbers = listed_numbers(model, rows, listed, options);
  Batch out = rows;
  out.set_ragged(batch::of_width(keys.log_probs, listed), numbers.log_probs);
  out.set_ragged(keys.rest, numbers.rest);
  return out;
}

Batch with_values(model::Model& model, const Batch& rows, const ScoringOptions& options) {
  return with_token_values(
      model, rows, batch::kValues, options,
      [&](const Batch&, const PackedRows&, const HeadInput& input) { return model.scores(input.hidden); });
}

Batch with_token_scores(model::Model& model, const Batch& rows, const Key<float>& key, const ScoringOptions& options) {
  return with_token_values(
      model, rows, key, options,
      [&](const Batch&, const PackedRows&, const HeadInput& input) { return model.scores(input.hidden); },
      &PackedRows::trained);
}

Batch with_scores(model::Model& model, const Batch& rows, const ScoringOptions& options) {
  std::vector<float> scores(static_cast<size_t>(rows.rows()));
  const auto scores_of = [&](const Batch&, const PackedRows&, const HeadInput& input) {
    return model.scores(input.hidden);
  };
  for_each_row(model, rows, options, &PackedRows::last_tokens, scores_of, [&](int64_t r, const float* score) {
    base::at(scores, r) = *score;
    return 1;
  });
  Batch out = rows;
  out.set(batch::kScore, scores);
  return out;
}

}  // namespace collimate::train
