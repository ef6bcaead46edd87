// Models over a base: the bits of a model of its own, in memory that several of them share.
#include <ATen/ops/ones.h>

#include <filesystem>

#include "collimate/model/lora.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::on_device;
using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

const LoraOptions kAdapters{.rank = 4, .alpha = 6};

TokenBatch some_tokens() { return testing::pack(testing::sequences({19, 5, 33}, 37)); }

shape::ModelShape with_head(const std::string& family, shape::Head head) {
  shape::ModelShape shape = tiny_shape(family);
  shape.head = head;
  return shape;
}

WeightsOptions over(const std::shared_ptr<Weights>& base, WeightsOptions options, Based based = Based::kWhole) {
  options.compute = base->options().compute;
  options.based = based;
  options.base = base;
  return options;
}

// Hidden states and adapters' gradients of a training pass.
std::vector<std::vector<float>> pass_of(const std::shared_ptr<Weights>& weights) {
  Model model(weights, {});
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(some_tokens(), Recompute::kNone, record);
  std::vector<std::vector<float>> numbers = {to_vector(hidden)};
  model.backward(std::move(record), on_device(at::ones(hidden.sizes(), at::kFloat)));
  for (size_t i = weights->own_params(); i < weights->params().size(); ++i) {
    const auto gradient = weights->gradient_of(static_cast<int>(i));
    numbers.emplace_back(gradient.begin(), gradient.end());
  }
  return numbers;
}

class OverABase : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Weights> adapted(WeightsOptions options) {
    options.trained = true;
    options.lora = kAdapters;
    auto weights = tiny_weights(tiny_shape(GetParam()), std::move(options));
    testing::fill_adapters(*weights);
    return weights;
  }
};

TEST_P(OverABase, AModelHasTheBitsOfOneOfItsOwn) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot}) {
    const auto base = tiny_weights(tiny_shape(GetParam()), {.compute = compute});
    const auto shared = adapted(over(base, {})), own = adapted({.compute = compute});
    EXPECT_EQ(pass_of(shared), pass_of(own));
    EXPECT_EQ(shared->checksum(), own->checksum());
    EXPECT_EQ(shared->changing_segments(), own->changing_segments());
    const auto reference = tiny_weights(tiny_shape(GetParam()), over(base, {}));
    Model model(reference, {}), alone(base, {});
    EXPECT_EQ(to_vector(model.logits(model.forward(some_tokens()))),
              to_vector(alone.logits(alone.forward(some_tokens()))));
    EXPECT_TRUE(reference->memory().empty()) << "a frozen model is its base";
  }
}

TEST_P(OverABase, TheBaseStaysWhileAdaptersChange) {
  const auto base = tiny_weights(tiny_shape(GetParam()), {});
  const auto shared = adapted(over(base, {}));
  const uint64_t before = base->checksum(), version = base->version();
  Model model(shared, {}), alone(base, {});
  const auto first = to_vector(model.forward(some_tokens())), of_base = to_vector(alone.forward(some_tokens()));
  for (const int s : shared->changing_segments())
    for (float& value : shared->master(s)) value *= 2;
  shared->commit();
  EXPECT_NE(to_vector(model.forward(some_tokens())), first);
  EXPECT_EQ(to_vector(alone.forward(some_tokens())), of_base);
  EXPECT_EQ(base->checksum(), before);
  EXPECT_EQ(base->version(), version);
}

TEST_P(OverABase, TheBaseLeavesWithTheLastOfTheModelsOverIt) {
  const auto base = tiny_weights(tiny_shape(GetParam()), {});
  const auto policy = adapted(over(base, {})), reference = tiny_weights(tiny_shape(GetParam()), over(base, {}));
  Model first(policy, {}), second(reference, {});
  const auto before = to_vector(first.forward(some_tokens())), other = to_vector(second.forward(some_tokens()));
  tensor::AwayFile away(std::filesystem::temp_directory_path());
  policy->offload(away);
  EXPECT_TRUE(base->resident());
  EXPECT_EQ(to_vector(second.forward(some_tokens())), other);
  reference->offload(away);
  EXPECT_FALSE(base->resident());
  policy->restore(away);
  EXPECT_EQ(to_vector(first.forward(some_tokens())), before);
  reference->restore(away);
  EXPECT_EQ(to_vector(second.forward(some_tokens())), other);
}

TEST_P(OverABase, AnotherHeadIsItsOwn) {
  const auto base = tiny_weights(tiny_shape(GetParam()), {});
  const auto shape = with_head(GetParam(), shape::Head::kValue);
  const WeightsOptions trained{.trained = true, .lora = kAdapters};
  const auto shared = tiny_weights(shape, over(base, trained, Based::kButHead)), own = tiny_weights(shape, trained);
  for (const auto& weights : {shared, own}) testing::fill_adapters(*weights);
  Model a(shared, {}), b(own, {});
  EXPECT_EQ(to_vector(a.scores(a.forward(some_tokens()))), to_vector(b.scores(b.forward(some_tokens()))));
  EXPECT_EQ(shared->changing_segments(), own->changing_segments());
}

INSTANTIATE_TEST_SUITE_P(Families, OverABase, ::testing::Values("llama", "gpt2", "qwen3", "mixtral", "deepseek_v3"),
                         [](const auto& named) { return named.param; });

TEST(OverABase, AnotherModelIsNone) {
  const auto base = tiny_weights(tiny_shape("llama"), {});
  EXPECT_THROW(tiny_weights(tiny_shape("gpt2"), over(base, {})), std::logic_error);
}

}  // namespace
}  // namespace collimate::model
