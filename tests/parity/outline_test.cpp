// The planner's closed forms over a model's outline against the model itself, of every family: they follow from one
// description, and what a plan says of a model here is what it takes.
#include "collimate/shape/outline.h"

#include <gtest/gtest.h>

#include "collimate/model/kv_cache.h"
#include "collimate/model/memory_plan.h"
#include "collimate/plan/cost/memory.h"
#include "collimate/shape/family.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/plan/cost/sample_job.h"

namespace collimate {
namespace {

constexpr int64_t kTokens = 512;

class OutlineOf : public ::testing::TestWithParam<std::string> {
 protected:
  shape::ModelShape shape_ = model::testing::tiny_shape(GetParam());
  shape::Outline outline_ = shape::outline_of(shape_);
};

// A config.json says as much of norms and the cache as the model that is read from it.
TEST_P(OutlineOf, IsThatOfItsConfig) {
  const nlohmann::json config = shape::to_config(shape_);
  const shape::Outline read = shape::parse_outline(config, "config.json");
  const shape::Outline model = shape::outline_of(shape::parse_model_shape(config, "config.json"));
  EXPECT_EQ(read.norms_around, model.norms_around);
  EXPECT_EQ(read.norm_of_all, model.norm_of_all);
  EXPECT_EQ(shape::cached_values(read), shape::cached_values(model));
}

// Norms and biases are no matrices, and are left out there.
TEST_P(OutlineOf, CountsTheModelsMatrices) {
  double matrices = 0, vectors = 0;
  for (const shape::ParamSpec& spec : shape::param_specs(shape_))
    (spec.sizes.size() == 2 ? matrices : vectors) += static_cast<double>(spec.count());
  EXPECT_EQ(shape::total_parameters(outline_), matrices);
  EXPECT_GT(vectors, 0);
}

TEST_P(OutlineOf, CountsTheAdaptersElements) {
  double adapters = 0;
  for (const shape::ParamSpec& spec : model::model_params(shape_, {.rank = 3}))
    if (model::is_adapter(spec)) adapters += static_cast<double>(spec.count());
  const shape::ModuleNames& names = shape::find_family(shape_.family, "").names;
  const bool gated = shape_.blocks.front().mlp.gated;
  const bool pieces =
      names.query_key_value.size() > 1 && (!gated || names.up.size() > 1) && names.shared_up.size() != 1;
  const double planned = shape::adapter_parameters(outline_, 3);
  EXPECT_TRUE(pieces ? planned == adapters : planned >= adapters)
      << planned << ", where the model has " << adapters << "; a layer of one piece has one A";
}

// The planner counts of latent attention what a cache of latents keeps; one that keeps them has an array more, of one
// layer's keys and values.
TEST_P(OutlineOf, CountsTheCache) {
  double values = static_cast<double>(model::kv_block_bytes(shape_, tensor::KvType::kFloat32)) / 4;
  if (outline_.latent.kv_rank > 0) {
    const double expanded = static_cast<double>(outline_.heads * (outline_.head_dim + outline_.latent.value_dim)) *
                            model::KvCache::kBlockTokens;
    if (!shape::keeps_latents(shape_)) {
      EXPECT_EQ(values, expanded * static_cast<double>(shape_.layers()));
      shape::keep_latents(shape_, "");
      values = static_cast<double>(model::kv_block_bytes(shape_, tensor::KvType::kFloat32)) / 4;
    }
    values -= expanded;
  }
  EXPECT_EQ(shape::cached_values(outline_) * static_cast<double>(shape_.layers()),
            values / model::KvCache::kBlockTokens);
}

// An upper bound but for copies of heads, normalised or, in latent attention, as they are made, and not far off, of
// what a training pass of a model with many layers keeps.
TEST_P(OutlineOf, BoundsTheActivations) {
  shape_.blocks.resize(24, shape_.blocks.back());
  outline_ = shape::outline_of(shape_);
  plan::Job job{outline_, plan::Work::kTrain, true, plan::DeviceKinds().find("cpu"), 1, 1, {}};
  job.load.rows = 1;
  job.load.prompt = job.load.completion = plan::Lengths::fixed(kTokens / 2);
  job.load.updates = 1;
  const plan::MemoryBound bound = plan::memory_of(job, {}, plan::constants_of(""));
  const double planned = plan::testing_support::item(bound, "activations");
  model::PassPlan plan(shape_, {.trained = true});
  const model::PassFloats floats = plan.training(kTokens, kTokens / 16, model::Recompute::kNone);
  const double taken = 4 * static_cast<double>(floats.activations + floats.gradients);
  EXPECT_GE(planned, (outline_.latent.kv_rank > 0 ? 0.75 : 0.9) * taken);
  EXPECT_LE(planned, 2 * taken);
}

INSTANTIATE_TEST_SUITE_P(Families, OutlineOf, ::testing::ValuesIn(model::testing::tiny_models()));

}  // namespace
}  // namespace collimate
