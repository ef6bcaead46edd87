#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "collimate/base/at.h"
#include "collimate/batch/token_rows.h"
#include "collimate/generate/engine.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/generator.h"
#include "collimate/rlhf/modules/trainer.h"
#include "collimate/train/scoring.h"
#include "tests/parity/small_learner.h"
#include "tests/support/model/edit_weights.h"

namespace collimate::test {
namespace {

// Samples that the learner's own weights drew, by decoding through the cache, as rows to train on.
Batch sampled_rows(SmallLearner& small) {
  const std::vector<std::vector<int32_t>> prompts = {{5, 3, 4, 12}, {2, 9, 8, 12}, {7, 7, 1, 12}};
  generate::SamplingParams sampling;
  sampling.max_tokens = 8;
  generate::EngineOptions options{.samples_per_prompt = 4};
  options.service.exec = small.exec;
  batch::TokenRows tokens;
  std::vector<std::vector<float>> log_probs;
  for (const generate::Completion& c : generate::generate_all(*small.model, prompts, sampling, options)) {
    std::vector<int32_t> ids = base::at(prompts, c.prompt);
    ids.insert(ids.end(), c.tokens.begin(), c.tokens.end());
    tokens.add(c.uid, std::move(ids), 4);
    log_probs.emplace_back(4, 0.0F);
    log_probs.back().insert(log_probs.back().end(), c.log_probs.begin(), c.log_probs.end());
  }
  Batch rows = tokens.batch();
  rows.set_ragged(batch::kLogProbs, log_probs);
  return rows;
}

void set_version(Batch& rows, uint64_t version) {
  std::vector<std::vector<int64_t>> versions;
  for (int64_t r = 0; r < rows.rows(); ++r)
    versions.emplace_back(rows.length(batch::kIds.name, r), static_cast<int64_t>(version));
  rows.set_ragged(batch::kWeightsVersion, versions);
}

// Gives what an update of these rows finds; a forward that only compares must find the same.
train::Mismatch mismatch(SmallLearner& small, Batch rows) {
  set_version(rows, small.weights->version());
  const train::Mismatch checked = small.learner->check(rows);
  const train::Mismatch found =
      small.accumulate(rows, rlhf::make_loss("completions", "nll", {}), train::count_rows(rows)).mismatch;
  EXPECT_EQ(checked.tokens_compared, found.tokens_compared);
  EXPECT_EQ(checked.log_prob_abs_max, found.log_prob_abs_max);
  return found;
}

class Mismatch : public testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path()); }
  Scratch scratch_{"mismatch"};
};

TEST_F(Mismatch, DecodedScoredAndTrainedValuesHaveEqualBits) {
  SmallLearner small(scratch_.path(), "lm", 30);
  const Batch rows = sampled_rows(small);
  const train::Mismatch found = mismatch(small, rows);
  EXPECT_EQ(found.tokens_compared, static_cast<int64_t>(train::count_rows(rows).tokens));
  EXPECT_EQ(found.tokens_other_version, 0);
  EXPECT_EQ(found.log_prob_abs_max, 0.0);
  const Batch scored = train::with_log_probs(*small.model, rows, batch::kOldLogProbs, {1.0F, 17});
  EXPECT_EQ(scored.all(batch::kOldLogProbs), rows.all(batch::kLogProbs));
}

TEST_F(Mismatch, TokensOfAnotherVersionAreCountedAndNotCompared) {
  SmallLearner small(scratch_.path(), "lm", 30);
  Batch rows = sampled_rows(small);
  set_version(rows, small.weights->version() + 1);
  const train::Mismatch found =
      small.accumulate(rows, rlhf::make_loss("completions", "nll", {}), train::count_rows(rows)).mismatch;
  EXPECT_EQ(found.tokens_compared, 0);
  EXPECT_EQ(found.tokens_other_version, static_cast<int64_t>(train::count_rows(rows).tokens));
}

TEST_F(Mismatch, OneUlpInARecordedLogProbMovesIt) {
  SmallLearner small(scratch_.path(), "lm", 30);
  Batch rows = sampled_rows(small);
  std::vector<std::vector<float>> recorded;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto row = rows.row(batch::kLogProbs, r);
    recorded.emplace_back(row.begin(), row.end());
  }
  float& last = recorded.back().back();
  const double ulp = std::abs(static_cast<double>(last) - std::nextafter(last, 0.0F));
  last = std::nextafter(last, 0.0F);
  rows.set_ragged(batch::kLogProbs, recorded);
  EXPECT_EQ(mismatch(small, rows).log_prob_abs_max, ulp);
  last = std::nanf("");
  rows.set_ragged(batch::kLogProbs, recorded);
  EXPECT_EQ(mismatch(small, rows).log_prob_abs_max, std::numeric_limits<double>::infinity());
}

// A fault of one ulp between decoding and training, in a norm, a packed panel of a block, and the packed head.
TEST_F(Mismatch, OneUlpInAWeightMovesIt) {
  for (const char* name : {"model.norm.weight", "model.layers.0.mlp.down_proj.weight", "lm_head.weight"}) {
    SmallLearner small(scratch_.path(), "lm", 30);
    const Batch rows = sampled_rows(small);
    const int index = small.weights->index_of(name);
    ASSERT_GE(index, 0) << name;
    {
      const tensor::HostEdit weight = model::testing::edit_of(*small.weights, index);
      float* largest = std::max_element(weight.begin(), weight.end());
      *largest = std::nextafter(*largest, 10.0F);
    }
    small.weights->commit();
    const double moved = mismatch(small, rows).log_prob_abs_max;
    EXPECT_GT(moved, 0.0) << name;
    EXPECT_LT(moved, 1e-4) << name;
  }
}

// Packed panels follow the weights' version.
TEST_F(Mismatch, ACommittedChangeReachesDecodingAndTrainingAlike) {
  SmallLearner small(scratch_.path(), "lm", 30);
  model::testing::edit_of(*small.weights, small.weights->index_of("lm_head.weight"))[7] += 0.5F;
  small.weights->commit();
  EXPECT_EQ(mismatch(small, sampled_rows(small)).log_prob_abs_max, 0.0);
}

TEST_F(Mismatch, TrainingScoringAndGenerationReadTheSameAddresses) {
  nlohmann::json parameters = {{"path", scratch_.path().string()},
                               {"from_scratch", true},
                               {"weights", "policy"},
                               {"trained", true},
                               {"row_tokens", 32}};
  rlhf::GeneratorModule generator(parameters);
  parameters["loss_rows"] = "rollouts";
  parameters["default_loss"] = "grpo";
  rlhf::TrainerModule trainer(parameters);
  parameters.erase("loss_rows");
  rlhf::ScorerModule scorer(parameters);
  parameters["weights"] = "reference";
  parameters["trained"] = false;
  rlhf::ScorerModule reference(parameters);
  host::CorePool pool(1);
  flow::SharedObjects objects;
  flow::SharedStore store;
  flow::Context context{.config = nlohmann::json::object(), .pool = &pool, .store = &store, .objects = &objects};
  for (flow::Module* module : std::initializer_list<flow::Module*>{&generator, &trainer, &scorer, &reference})
    module->setup(context);
  const auto addresses = [](flow::Module& module, const char* name) {
    std::vector<const float*> out;
    flow::WeightsPort& port = *module.weights();
    for (size_t i = 0; i < port.whole_params().size(); ++i) out.push_back(port.kept(static_cast<int>(i)).values.data());
    fmt::print("{:12} weights {} parameters from {}\n", name, module.weights()->identity(), fmt::ptr(out.front()));
    return out;
  };
  const auto generated = addresses(generator, "generation");
  EXPECT_EQ(generated, addresses(trainer, "training"));
  EXPECT_EQ(generated, addresses(scorer, "scoring"));
  EXPECT_NE(generated, addresses(reference, "reference"));
  EXPECT_EQ(generator.weights()->identity(), trainer.weights()->identity());
  EXPECT_EQ(generator.weights()->identity(), scorer.weights()->identity());
  const auto decoder = objects.find<rlhf::Decoder>("decoder:policy");
  ASSERT_NE(decoder, nullptr);
  EXPECT_EQ(&decoder->model->weights(), generator.weights()->identity());
  EXPECT_TRUE(objects.find<rlhf::Decoder>("decoder:reference")->weights->gradient(0).empty());
}

}  // namespace
}  // namespace collimate::test
