// The experts that a mixture's routers choose in generation are those of training, forward and recomputed.
#include <gmock/gmock.h>

#include <cstdio>
#include <set>

#include "collimate/shape/mixture.h"
#include "collimate/tensor/operations.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/altered_experts.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using Choices = std::vector<int32_t>;  // [T, K] of one router in one pass

// The CPU, which keeps what its routers choose, pass by pass and router by router.
class RecordingDevice final : public tensor::Device {
 public:
  std::string_view name() const override { return "recording"; }
  const tensor::Operations& operations() const override {
    static const tensor::Operations kOperations = [] {
      tensor::Operations all = tensor::cpu_device().operations();
      all.route = &RecordingDevice::route;
      return all;
    }();
    return kOperations;
  }
  void* take(int64_t bytes) const override { return cpu().take(bytes); }
  void give_back(void* block, bool keep) const noexcept override { cpu().give_back(block, keep); }
  void* open(tensor::Stream* stream, void* bytes, int64_t count, bool write) const override {
    return cpu().open(stream, bytes, count, write);
  }
  void close(tensor::Stream* stream, void* bytes, int64_t count, bool write, void* opened) const noexcept override {
    cpu().close(stream, bytes, count, write, opened);
  }
  void follow(tensor::Stream* stream, const tensor::Pending& work, double deadline_seconds) const override {
    cpu().follow(stream, work, deadline_seconds);
  }
  bool reads_host_memory() const override { return true; }

  // Gives what was recorded since the last call.
  static std::vector<Choices> take_choices() { return std::exchange(recorded(), {}); }

 private:
  static const tensor::Device& cpu() { return tensor::cpu_device(); }
  static std::vector<Choices>& recorded() {
    static std::vector<Choices> all;
    return all;
  }
  static void route(const tensor::Exec& exec, const shape::Experts& how, const float* logits, int64_t tokens,
                    const float* bias, const tensor::Routed& out) {
    tensor::cpu::route(exec, how, logits, tokens, bias, out);
    recorded().emplace_back(out.choices, out.choices + tokens * how.per_token);
  }
};

const RecordingDevice& recording_device() {
  static const RecordingDevice device;
  return device;
}

class RouterChoices : public ::testing::TestWithParam<std::tuple<const char*, ComputeType>> {
 protected:
  // Gives each router's choices for all tokens: the first nine in one step, then one by one.
  std::vector<Choices> of_generation() {
    KvCache cache(shape_, kv_type(std::get<1>(GetParam())), 4, exec_);
    const std::vector<int32_t> table = {2, 0, 3, 1};
    std::vector<Choices> all;
    for (size_t done = 0; done < ids_.size();) {
      const size_t count = done == 0 ? 9 : 1;
      TokenBatch step{.ids = {}, .positions = {}, .starts = {0, static_cast<int32_t>(count)}};
      for (size_t i = 0; i < count; ++i, ++done) {
        step.ids.push_back(ids_[done]);
        step.positions.push_back(static_cast<int32_t>(done));
      }
      model_.forward_cached(step, cache, {&table, 1});
      const std::vector<Choices> pass = RecordingDevice::take_choices();
      all.resize(pass.size());
      for (size_t router = 0; router < pass.size(); ++router)
        all[router].insert(all[router].end(), pass[router].begin(), pass[router].end());
    }
    return all;
  }

  // Hidden states and gradients of a training step that recomputes.
  std::vector<float> trained(const TokenBatch& tokens) {
    weights_->zero_gradients();
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model_.forward_train(tokens, Recompute::kFull, record);
    model_.backward(std::move(record), hidden);
    std::vector<float> out = testing::all_gradients(*weights_);
    const tensor::HostTensor states(exec_, hidden);
    out.insert(out.end(), states.floats().begin(), states.floats().end());
    return out;
  }

  const tensor::Exec exec_{.device = &recording_device()};
  const shape::ModelShape shape_ = testing::tiny_shape(std::get<0>(GetParam()));
  std::shared_ptr<Weights> weights_ =
      std::make_shared<Weights>(shape_, WeightsOptions{.trained = true, .compute = std::get<1>(GetParam())}, exec_);
  Model model_{weights_, exec_};
  const std::vector<int32_t> ids_ = testing::sequences({57}, 37).front();
};

TEST_P(RouterChoices, OfGenerationAreThoseOfTraining) {
  weights_->initialize(3, 0.3F);
  const std::vector<Choices> generated = of_generation();
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model_.forward_train(testing::pack({ids_}), Recompute::kFull, record);
  const std::vector<Choices> trained = RecordingDevice::take_choices();
  model_.backward(std::move(record), hidden);
  std::vector<Choices> recomputed = RecordingDevice::take_choices();
  std::reverse(recomputed.begin(), recomputed.end());  // the last block first
  ASSERT_EQ(trained.size(), generated.size());
  ASSERT_EQ(recomputed.size(), generated.size());
  int64_t compared = 0, differences = 0;
  std::set<int32_t> chosen;
  for (size_t router = 0; router < generated.size(); ++router) {
    ASSERT_EQ(trained[router].size(), generated[router].size());
    for (size_t i = 0; i < generated[router].size(); ++i, ++compared) {
      const int32_t expert = generated[router][i];
      chosen.insert(expert);
      differences += trained[router][i] != expert || recomputed[router][i] != expert;
    }
  }
  std::printf("%lld choices, %lld differences\n", static_cast<long long>(compared),
              static_cast<long long>(differences));
  EXPECT_GE(compared, 57 * 2);
  EXPECT_EQ(differences, 0);
  EXPECT_GE(chosen.size(), 4U) << "the case would show nothing";
}

// Choices that generation keeps change no bit when training compares and replays them, forward and recomputed.
TEST_P(RouterChoices, AreKeptComparedAndReplayedToTheBit) {
  weights_->initialize(3, 0.3F);
  TokenBatch tokens = testing::pack({ids_});
  const std::vector<float> without = trained(tokens);
  KvCache cache(shape_, kv_type(std::get<1>(GetParam())), 4, exec_);
  const std::vector<int32_t> table = {2, 0, 3, 1};
  model_.forward_cached(tokens, cache, {&table, 1}, &tokens.experts);
  RouterAgreement agreement;
  tokens.agreement = &agreement;
  const int64_t all = std::ssize(ids_) * shape::routers_of(shape_);
  for (const bool replayed : {false, true}) {
    tokens.replayed = replayed;
    agreement = {};
    EXPECT_EQ(trained(tokens), without) << replayed;
    EXPECT_EQ(agreement.compared, 2 * all) << "a recomputed one again";
    EXPECT_EQ(agreement.differing, 0);
  }
  agreement = {};
  model_.forward(tokens);
  EXPECT_EQ(agreement.compared, all);
  testing::alter_experts(tokens.experts, shape_, 5);
  std::fill_n(tokens.experts.begin(), routed_width(shape_), -1);  // of the first token none are known
  tokens.replayed = false;
  agreement = {};
  EXPECT_EQ(trained(tokens), without) << "what is only compared changed something";
  EXPECT_EQ(agreement.compared, 2 * (all - shape::routers_of(shape_)));
  EXPECT_EQ(agreement.differing, 2 * ((std::ssize(ids_) - 1) / 5));
}

TEST_P(RouterChoices, ThatCannotBeTheModelsAreRefused) {
  TokenBatch tokens = testing::pack({ids_});
  tokens.experts.assign(3, 0);
  EXPECT_THAT(base::message_of([&] { model_.forward(tokens); }), ::testing::HasSubstr("[routed_experts] expected"));
  tokens.experts.assign(ids_.size() * static_cast<size_t>(routed_width(shape_)), 0);
  EXPECT_THAT(base::message_of([&] { model_.forward(tokens); }), ::testing::HasSubstr("ascending experts below"));
}

INSTANTIATE_TEST_SUITE_P(Mixtures, RouterChoices,
                         ::testing::Combine(::testing::Values("mixtral", "qwen2_moe", "qwen3_moe", "dots1",
                                                              "deepseek_v2", "deepseek_v3"),
                                            ::testing::Values(ComputeType::kFloat32, ComputeType::kBFloat16Dot)));

}  // namespace
}  // namespace collimate::model
