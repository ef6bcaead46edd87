// Segments that ranks share: what a pass finds while it holds them, and what is left behind it.
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include <map>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/memory_plan.h"
#include "tests/support/base/error_of.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/model/whole_values.h"

namespace collimate::model {
namespace {

// Gives a family's shape with blocks large enough to be shared by two.
shape::ModelShape wide(const std::string& family) {
  shape::ModelShape shape = testing::tiny_shape(family);
  for (shape::Block& block : shape.blocks) block.mlp.intermediate = 256;
  return shape;
}

std::shared_ptr<Weights> shared_weights(const shape::ModelShape& shape, comm::Group& group, WeightsOptions options) {
  options.ranks.shares = {{&group, comm::kDeadlineOfRanks}, group.rank(), group.size()};
  return testing::tiny_weights(shape, options);
}

std::map<std::string, int64_t> held_items(const Weights& weights) {
  std::map<std::string, int64_t> all;
  for (const MemoryItem& item : weights.memory()) all[item.purpose] = item.bytes;
  return all;
}

class HeldWeights : public ::testing::TestWithParam<std::string> {};

TEST_P(HeldWeights, ComputeAsWholeOnesInEveryPass) {
  const shape::ModelShape shape = wide(GetParam());
  const TokenBatch tokens = testing::pack(testing::sequences({9, 14, 3}, 37));
  Model whole(testing::tiny_weights(shape, {}), {});
  const at::Tensor hidden = whole.forward(tokens), logits = whole.logits(hidden);
  const std::vector<float> values = testing::whole_values(whole.weights());
  comm::with_ranks(2, "held " + GetParam(), [&](comm::Group& group) {
    const auto weights = shared_weights(shape, group, {});
    ASSERT_TRUE(weights->is_shared(1));
    EXPECT_EQ(weights->checksum(), whole.weights().checksum());
    EXPECT_EQ(testing::whole_values(*weights), values);
    Model model(weights, {});
    const at::Tensor mine = model.forward(tokens);
    EXPECT_TRUE(at::equal(mine, hidden));
    EXPECT_EQ(held_items(*weights)["gathered"], 0) << "a pass gives back what it held";
    {
      const auto held = model.hold_head();
      EXPECT_TRUE(at::equal(model.logits(mine), logits));
    }
    const auto held = weights->hold_for_inference();
    const int64_t bytes = held_items(*weights)["gathered"];
    EXPECT_TRUE(at::equal(model.forward(tokens), hidden));
    EXPECT_TRUE(at::equal(model.logits(mine), logits));
    EXPECT_EQ(held_items(*weights)["gathered"], bytes) << "nothing was gathered again";
    int64_t floats = 0;
    for (int s = 0; s < weights->segments(); ++s) floats += weights->segment_floats(s);
    EXPECT_LT(bytes, floats * static_cast<int64_t>(sizeof(float))) << "panels stand for what they were packed from";
  });
}

INSTANTIATE_TEST_SUITE_P(Families, HeldWeights, ::testing::Values("llama", "gpt2", "qwen2", "mixtral", "gptj"));

// Lengths of rows, and the factors by them, are of whole matrices, also where panels alone are held.
TEST(SharedSegments, GiveDorasAdaptersWholeRows) {
  const shape::ModelShape shape = wide("llama");
  const WeightsOptions options{.trained = true, .lora = {.rank = 3, .alpha = 2, .dora = true}};
  const TokenBatch tokens = testing::pack(testing::sequences({9, 14, 3}, 37));
  Model whole(testing::tiny_weights(shape, options), {});
  const at::Tensor hidden = whole.forward(tokens);
  comm::with_ranks(2, "held rows", [&](comm::Group& group) {
    const auto weights = shared_weights(shape, group, options);
    ASSERT_TRUE(weights->is_shared(1));
    EXPECT_EQ(weights->checksum(), whole.weights().checksum());
    Model model(weights, {});
    EXPECT_TRUE(at::equal(model.forward(tokens), hidden));
    const auto held = weights->hold_for_inference();
    EXPECT_TRUE(at::equal(model.forward(tokens), hidden));
  });
}

TEST(SharedSegments, AreReadWhileTheyAreHeldAlone) {
  comm::with_ranks(2, "unheld", [&](comm::Group& group) {
    const auto weights = shared_weights(wide("llama"), group, {.trained = true});
    const int index = weights->index_of(shape::Part::kUp, 1);
    const auto message = [&](const auto& read) { return base::message_of<base::GuardError>(read); };
    const std::string expected = "its segment held, for a pass that reads it";
    EXPECT_NE(message([&] { weights->param(index); }).find(expected), std::string::npos);
    EXPECT_NE(message([&] { weights->panels(index); }).find(expected), std::string::npos);
    EXPECT_NE(message([&] { weights->segment_values(1); }).find("it held"), std::string::npos);
    {
      const Weights::Held held = weights->hold(1);
      const Weights::Held again = weights->hold(1);
      EXPECT_NE(weights->param(index), nullptr);
    }
    EXPECT_NE(message([&] { weights->param(index); }).find(expected), std::string::npos);
    const auto held = weights->hold_for_inference();
    weights->panels(index);
    EXPECT_NE(message([&] { weights->param(index); }).find(expected), std::string::npos);  // its panels alone are here
  });
}

// The next pass gathers what an update has changed.
TEST(SharedSegments, PanelsAreOfTheValuesThatWereGathered) {
  comm::with_ranks(2, "changed", [&](comm::Group& group) {
    const auto weights = shared_weights(wide("llama"), group, {.trained = true});
    Model model(weights, {});
    const TokenBatch tokens = testing::pack(testing::sequences({9, 14, 3}, 37));
    const at::Tensor before = model.forward(tokens);
    for (int s = 1; s < weights->segments(); ++s)
      for (float& value : tensor::HostEdit({}, weights->kept_values(s))) value *= 1.5F;
    weights->commit();
    EXPECT_FALSE(at::equal(model.forward(tokens), before));
  });
}

TEST(SharedSegments, AreInMemoryAsPlanned) {
  constexpr int kHolder = 141;
  for (const char* family : {"llama", "qwen2", "mixtral"})
    for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot}) {
      const shape::ModelShape shape = wide(family);
      comm::with_ranks(2, fmt::format("planned {} {}", family, static_cast<int>(compute)), [&](comm::Group& group) {
        const tensor::MemoryScope scope(kHolder + group.rank(), "tensors");
        const auto weights = shared_weights(shape, group, {.compute = compute});
        for (const bool inference : {false, true}) {
          tensor::reset_memory_peaks(kHolder + group.rank());
          Model model(weights, {});
          std::vector<Weights::Held> held;
          if (inference) held = weights->hold_for_inference();
          if (!inference) model.forward(testing::pack(testing::sequences({9, 14, 3}, 37)));
          if (!inference) {
            const auto head = model.hold_head();
            model.logits(testing::on_device(at::ones({2, shape.table_width()}, at::kFloat)));
          }
          if (group.rank() == 0) continue;  // the last one keeps the most
          std::map<std::string, int64_t> peaks;
          for (const tensor::MemoryUse& use : tensor::memory_report())
            if (use.worker == kHolder + group.rank()) peaks[use.purpose] = use.peak_bytes;
          for (const MemoryItem& item : weights_memory(shape, weights->options(), Sharing(), inference)) {
            EXPECT_LE(peaks["model/" + item.purpose], item.bytes) << item.purpose << " " << family;
            EXPECT_GE(static_cast<double>(peaks["model/" + item.purpose]), 0.9 * static_cast<double>(item.bytes))
                << item.purpose << " " << family << " " << inference;
          }
        }
      });
    }
}

}  // namespace
}  // namespace collimate::model
