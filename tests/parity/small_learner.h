#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/teacher_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/host/core_pool.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/train/learner.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/small_task.h"

namespace collimate::test {

// A small trained model with its learner; one of the ranks of `group` when there is one.
struct SmallLearner {
  SmallLearner(const fs::path& start, const std::string& head, int64_t micro_batch_tokens, int threads = 1,
               comm::Group* group = nullptr, const model::WeightsOptions& kept = {.trained = true})
      : pool(threads) {
    shape::ModelShape shape = shape::read_model_shape(start.string());
    if (head == "score") shape.head = shape::Head::kScore;
    if (head == "value") shape.head = shape::Head::kValue;
    weights = std::make_shared<model::Weights>(shape, kept, exec);
    weights->initialize(11, 0.2F);
    if (kept.lora.on()) model::testing::fill_adapters(*weights);
    const int last = static_cast<int>(weights->params().size()) - 1;
    if (head != "lm")  // starts at zero, and then nothing below it has a gradient
      for (int64_t i = 0; i < weights->params().back().count(); ++i)
        model::testing::edit_of(*weights, last)[i] = 0.01F * static_cast<float>(1 + i % 7);
    weights->commit();
    model = std::make_unique<model::Model>(weights, exec);
    learner = std::make_unique<train::Learner>(*model, train::LearnerOptions{.micro_batch_tokens = micro_batch_tokens},
                                               exec, train::TrainingRanks{group});
  }

  // Loss of the rows as a part of an update of `counts`; their gradient is left in the weights.
  train::UpdateReport accumulate(const Batch& rows, const rlhf::Loss& loss, const batch::GlobalCounts& counts) {
    weights->zero_gradients();
    return learner->accumulate(rows, rlhf::objective_of(loss), counts);
  }
  std::vector<double> gradient(int param) const {
    const tensor::HostRead data = weights->gradient_of(param);
    return {data.begin(), data.end()};
  }

  host::CorePool pool;
  tensor::Exec exec{&pool};
  std::shared_ptr<model::Weights> weights;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<train::Learner> learner;
};

inline float uniform(uint64_t what, int64_t row, size_t token) {
  return static_cast<float>(base::random_bits(3, static_cast<uint32_t>(what), static_cast<uint64_t>(row),
                                              static_cast<uint32_t>(token)) %
                            10007) /
         10007.0F;
}

// A teacher's distributions: three tokens of the vocabulary of 13 for each trainable token, and the rest.
inline void add_teacher(Batch& rows) {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> log_probs, rest;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    ids.emplace_back(), log_probs.emplace_back(), rest.emplace_back();
    const auto trainable = rows.row(batch::kTrainable, r);
    for (size_t t = 0; t < trainable.size(); ++t) {
      if (trainable[t] == 0) continue;
      const auto first = static_cast<int32_t>(10 * uniform(8, r, t));
      float left = 1;
      for (int32_t k = 0; k < 3; ++k) {
        const float p = 0.3F * uniform(9 + k, r, t) + 0.02F;
        ids.back().push_back(first + k);
        log_probs.back().push_back(std::log(p));
        left -= p;
      }
      rest.back().push_back(std::log(left));
    }
  }
  rows.set_ragged(batch::of_width(batch::kTeacherIds, 3), ids);
  rows.set_ragged(batch::of_width(batch::kTeacherLogProbs, 3), log_probs);
  rows.set_ragged(batch::kTeacherRest, rest);
}

// Rows of 5 to 15 tokens with every column that a loss reads; rows 2i and 2i + 1 are a pair.
inline Batch training_rows(int64_t count) {
  batch::TokenRows tokens;
  std::vector<int64_t> pairs;
  for (int64_t r = 0; r < count; ++r) {
    pairs.push_back(r / 2);
    std::vector<int32_t> ids;
    for (size_t t = 0; t < static_cast<size_t>(5 + r * 7 % 11); ++t)
      ids.push_back(static_cast<int32_t>(2 + 11 * uniform(1, r, t)));
    tokens.add(100 + r, ids, 3);
  }
  Batch rows = tokens.batch();
  rows.set(batch::kPairUid, pairs);
  const auto set = [&](const batch::Key<float>& key, const std::function<float(int64_t row, size_t token)>& value) {
    std::vector<std::vector<float>> column;
    for (int64_t r = 0; r < count; ++r) {
      column.emplace_back(rows.row(batch::kIds, r).size());
      for (size_t t = 0; t < column.back().size(); ++t) column.back()[t] = value(r, t);
    }
    rows.set_ragged(key, column);
  };
  set(batch::kLogProbs, [](int64_t r, size_t t) { return -2.5F + 0.3F * uniform(2, r, t); });
  set(batch::kReferenceLogProbs, [](int64_t r, size_t t) { return -2.5F + 0.3F * uniform(3, r, t); });
  set(batch::kAdvantages, [](int64_t r, size_t) { return 2 * uniform(4, r, 0) - 1; });
  set(batch::kValues, [](int64_t r, size_t t) { return uniform(5, r, t); });
  set(batch::kReturns, [](int64_t r, size_t t) { return uniform(6, r, t); });
  set(rlhf::kCompletion, [](int64_t, size_t t) { return t > 3 ? 1.0F : 0.0F; });
  set(rlhf::kStepRight, [](int64_t r, size_t t) { return (r + static_cast<int64_t>(t)) % 3 == 0 ? 1.0F : 0.0F; });
  add_teacher(rows);
  std::vector<float> desirable;
  for (int64_t r = 0; r < count; ++r) desirable.push_back(r % 3 == 0 ? 1.0F : 0.0F);
  rows.set(rlhf::kDesirable, desirable);
  std::vector<float> rewards;
  std::vector<int64_t> prompts;
  for (int64_t r = 0; r < count; ++r) {
    rewards.push_back(uniform(7, r, 0));
    prompts.push_back(r / 4);
  }
  rows.set(batch::kReward, rewards);
  rows.set(batch::kPromptUid, prompts);
  rows.set(rlhf::kIterationTokens, std::vector<float>(desirable.size(), 123.F));
  rows.set(rlhf::kKlEstimate, std::vector<float>(desirable.size(), 0.2F));
  return rows;
}

}  // namespace collimate::test
