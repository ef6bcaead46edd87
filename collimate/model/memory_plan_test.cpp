#include "collimate/model/memory_plan.h"

#include <ATen/ops/ones.h>

#include <map>

#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

constexpr int kWorker = 71;

std::map<std::string, int64_t> peaks() {
  std::map<std::string, int64_t> out;
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == kWorker) out[use.purpose] = use.peak_bytes;
  return out;
}

std::map<std::string, int64_t> by_purpose(const std::vector<tensor::MemoryItem>& items) {
  std::map<std::string, int64_t> out;
  for (const tensor::MemoryItem& item : items) out["model/" + item.purpose] = item.bytes;
  return out;
}

class MemoryPlan : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { tensor::reset_memory_peaks(kWorker); }
  // A device with memory of its own has a step's ids and tables there too, which no plan counts.
  static void expect_workspace(const std::vector<tensor::MemoryItem>& planned) {
    const int64_t bytes = by_purpose(planned).at("model/workspace");
    if (tensor::default_device().reads_host_memory())
      EXPECT_EQ(peaks().at("model/workspace"), bytes);
    else
      EXPECT_GE(peaks().at("model/workspace"), bytes);
  }
  // The arenas of passes of `tokens_`, or of the first context rank's part of them, take what is planned.
  void expect_passes(const WeightsOptions& options, const ContextRanks& context = {}) {
    tensor::install_aten_allocator();
    if (context.several()) tokens_.cut = std::make_shared<ContextCut>(tokens_.starts, context);
    const int64_t own = (51 + context.ranks - 1) / context.ranks;
    auto weights = testing::tiny_weights(shape_, options);
    PassPlan plan(shape_, options);
    Model model(weights, {});
    tensor::reset_memory_peaks(kWorker);
    model.forward(tokens_);
    expect_workspace(pass_memory(shape_, own, plan.inference(51, 5, context)));
    int64_t beside = 0;
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      Model trained(weights, {});
      tensor::reset_memory_peaks(kWorker);
      std::unique_ptr<ForwardRecord> record;
      const at::Tensor hidden =
          trained.forward_train(options.lora.dropout > 0 ? testing::noisy(tokens_) : tokens_, recompute, record);
      trained.backward(std::move(record), testing::on_device(at::ones(hidden.sizes(), at::kFloat)));
      const auto planned = by_purpose(pass_memory(shape_, own, plan.training(51, 5, recompute, context)));
      EXPECT_EQ(peaks().at("model/activations"), planned.at("model/activations"));
      // Kernels take some of their own beside it, which is no part of this plan.
      const int64_t more = peaks().at("model/workspace") - planned.at("model/workspace");
      if (recompute == Recompute::kNone) beside = more;
      EXPECT_EQ(more, beside);
    }
  }

  shape::ModelShape shape_ = testing::tiny_shape(GetParam());
  const int tensor_ranks_ = shape_.blocks.front().attention.norm_of_all ? 1 : 2;  // of which such a model has one
  tensor::MemoryScope scope_{kWorker, "tensors"};
  // 51 tokens in 3 sequences, which fill 2 + 2 + 1 blocks.
  TokenBatch tokens_ = testing::pack(testing::sequences({20, 17, 14}, 37));
};

TEST_P(MemoryPlan, OfWeightsIsWhatTheyTake) {
  for (const auto& [compute, ranks] :
       {std::pair(ComputeType::kFloat32, 1), {ComputeType::kBFloat16Dot, tensor_ranks_}}) {
    tensor::reset_memory_peaks(kWorker);
    WeightsOptions options{.trained = true, .compute = compute, .ranks = {.tensor = {{}, {0, ranks}}}};
    auto weights = testing::tiny_weights(shape_, options);
    Model model(weights, {});
    model.logits(model.forward(tokens_));
    for (int s = 0; s < weights->segments(); ++s) weights->segment_gradient(s);
    const auto planned = by_purpose(weights_memory(shape_, options));
    const auto held = peaks();
    for (const char* item : {"model/master", "model/gradient", "model/panels"})
      EXPECT_EQ(held.at(item), planned.at(item)) << item;
    EXPECT_EQ(planned.at("model/optimizer"), 2 * planned.at("model/master"));
    options.trained = false;
    EXPECT_EQ(weights_memory(shape_, options).size(), 2U);
  }
}

// Weights that training leaves as they are take the base's memory, whatever the head.
TEST_P(MemoryPlan, OfAModelOverABaseIsWhatItTakes) {
  for (const bool other_head : {false, true}) {
    const auto base = testing::tiny_weights(shape_, {.tag = "base"});
    shape::ModelShape shape = shape_;
    if (other_head) shape.head = shape::Head::kValue;
    const WeightsOptions options{
        .trained = true, .lora = {.rank = 4}, .based = other_head ? Based::kButHead : Based::kWhole, .base = base};
    tensor::reset_memory_peaks(kWorker);
    const auto weights = testing::tiny_weights(shape, options);
    weights->pack_all();
    for (const int s : weights->changing_segments()) weights->segment_gradient(s);
    const auto planned = by_purpose(weights_memory(shape, options)), held = peaks();
    for (const char* item : {"model/master", "model/gradient", "model/panels"})
      EXPECT_EQ(held.at(item), planned.at(item)) << item << (other_head ? " with a value head" : "");
    for (const auto* items : {&planned, &held}) EXPECT_FALSE(items->contains("model/values"));
  }
}

TEST_P(MemoryPlan, OfInt8WeightsIsWhatTheyTake) {
  const WeightsOptions options{.compute = ComputeType::kInt8};
  Model model(testing::tiny_weights(shape_, options), {});
  model.logits(model.forward(tokens_));
  EXPECT_EQ(peaks().at("model/panels"), by_purpose(weights_memory(shape_, options)).at("model/panels"));
}

TEST_P(MemoryPlan, OfPassesIsWhatTheirArenasTake) {
  expect_passes({.trained = true});
  expect_passes({.trained = true, .lora = {.rank = 5}});
  expect_passes({.trained = true, .lora = {.rank = 5, .dropout = 0.1}});
  expect_passes({.trained = true, .lora = {.rank = 5, .dora = true}});
  expect_passes({.trained = true, .lora = {.rank = 5}, .ranks = {.tensor = {{}, {tensor_ranks_ - 1, tensor_ranks_}}}});
  expect_passes({.trained = true}, {.ranks = 3});
}

TEST_P(MemoryPlan, OfPassesByHeadsIsWhatTheirArenasTake) {
  expect_passes({.trained = true}, {.ranks = 2, .kind = shape::ContextKind::kUlysses});
}

TEST_P(MemoryPlan, OfTheCacheIsWhatItTakes) {
  KvCache cache(shape_, tensor::KvType::kFloat32, 7);
  EXPECT_EQ(peaks().at("kv_cache"), kv_cache_bytes(shape_, tensor::KvType::kFloat32, 7));
}

// A step behind others of its sequence: latents that a cache keeps become keys and values.
TEST_P(MemoryPlan, OfACachedStepIsWhatItTakes) {
  tensor::install_aten_allocator();
  const auto weights = testing::tiny_weights(shape_, {});
  KvCache cache(shape_, tensor::KvType::kFloat32, 6);
  const std::vector<int32_t> table = {3, 0, 5, 1, 2, 4};
  Model(weights, {}).forward_cached(testing::pack(testing::sequences({70}, 37)), cache, {&table, 1});
  Model model(weights, {});
  tensor::reset_memory_peaks(kWorker);
  model.forward_cached({{5, 6, 7}, {70, 71, 72}, {0, 3}}, cache, {&table, 1});
  expect_workspace(pass_memory(shape_, 3, PassPlan(shape_, {}).inference(3, 0)));
}

// The model's own values are no master any more; gradients and moments are of adapters alone.
TEST_P(MemoryPlan, OfAdaptersIsWhatTheyTake) {
  const WeightsOptions options{.trained = true, .lora = {.rank = 5}};
  const auto weights = testing::tiny_weights(shape_, options);
  Model model(weights, {});
  model.logits(model.forward(tokens_));
  for (int s = 0; s < weights->segments(); ++s) weights->segment_gradient(s);
  const auto planned = by_purpose(weights_memory(shape_, options));
  for (const char* item : {"model/master", "model/values", "model/gradient", "model/panels"})
    EXPECT_EQ(peaks().at(item), planned.at(item)) << item;
  EXPECT_LT(planned.at("model/gradient"), planned.at("model/values"));
  EXPECT_EQ(planned.at("model/optimizer"), 2 * planned.at("model/gradient"));
}

// The factors of rows stay, and one layer after another needs room to make them.
TEST_P(MemoryPlan, OfRowFactorsIsEnough) {
  const WeightsOptions options{.trained = true, .lora = {.rank = 5, .dora = true}};
  const auto weights = testing::tiny_weights(shape_, options);
  tensor::reset_memory_peaks(kWorker);
  Model(weights, {}).forward(tokens_);
  const int64_t planned = by_purpose(weights_memory(shape_, options)).at("model/factors");
  EXPECT_LE(peaks().at("model/factors"), planned);
  EXPECT_GT(by_purpose(weights->memory()).at("model/factors"), 0);
  EXPECT_FALSE(by_purpose(weights_memory(shape_, {.trained = true, .lora = {.rank = 5}})).contains("model/factors"));
}

INSTANTIATE_TEST_SUITE_P(Families, MemoryPlan, ::testing::ValuesIn(testing::tiny_models()));

}  // namespace
}  // namespace collimate::model
