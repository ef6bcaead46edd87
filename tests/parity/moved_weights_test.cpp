#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/rlhf/rollout/assemble.h"
#include "collimate/tensor/allocator.h"
#include "collimate/train/learner.h"
#include "collimate/train/scoring.h"
#include "tests/support/model/tiny_weights.h"

// Weights that move between the phases of training, and inside them, change no bit of what is generated, scored or
// learned.
namespace collimate::test {
namespace {

using model::Weights;
using Move = std::function<void(Weights&)>;
using Bits = std::vector<uint32_t>;
using Left = std::vector<std::pair<std::string, Bits>>;  // by what it is, in order

Bits bits_of(std::span<const float> values) {
  Bits bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

// Every freed block that the allocator keeps, filled with NaN: what still reads it must show, and nothing else gets it
// while this is held.
std::vector<tensor::Buffer> take_freed_memory() {
  constexpr int64_t kHeader = 64, kLargest = 1 << 18;
  std::vector<tensor::Buffer> taken;
  for (int64_t size = 2 * kHeader; size < kLargest; size = tensor::allocated_bytes(size - kHeader + 1))
    for (;;) {
      const int64_t cached = tensor::memory_cached();
      tensor::Buffer block(size - kHeader);
      if (tensor::memory_cached() >= cached) {  // a new one
        block.discard();
        break;
      }
      std::memset(block.data(), 0xFF, static_cast<size_t>(block.bytes()));
      taken.push_back(std::move(block));
    }
  return taken;
}

// Bytes that are used for purposes whose names end so; by default for all.
int64_t bytes_used(const std::string& purpose = "") {
  int64_t bytes = 0;
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.purpose.ends_with(purpose)) bytes += use.bytes;
  return bytes;
}

void move_away_and_back(Weights& weights) {
  static tensor::AwayFile away(std::filesystem::temp_directory_path());
  const int64_t used = bytes_used();
  weights.offload(away);
  EXPECT_LT(bytes_used(), used);  // by address nothing can be told: a device may give the same place again
  const auto taken = take_freed_memory();
  weights.restore(away);
  take_freed_memory();
}

// A policy that generates, is scored and trained over one copy of its weights, as in a recipe.
class Policy {
 public:
  Policy(const std::string& family, tensor::ComputeType compute)
      : weights_(model::testing::tiny_weights(model::testing::tiny_shape(family), {true, compute})),
        model_(weights_, {}),
        service_(model_, service_options()),
        learner_(model_, {.ema = 0.5, .micro_batch_tokens = 64}, {}) {}

  // Two rounds of generating, scoring and training, and samples of what they taught. `move` is called between all
  // phases, in the middle of generation and between backward and the optimizer.
  // With `leaves`, everything leaves the device between phases.
  Left learn(const Move& move, bool leaves = false) {
    Left left;
    for (int round = 0; round < 2; ++round) {
      const Batch rows = sample(left, 100 * round, move);
      if (leaves) leave_and_return();
      move(*weights_);
      const Batch scored = train::with_log_probs(model_, rows, batch::kOldLogProbs, {1.0F, 64});
      left.emplace_back("scored", bits_of(scored.all(batch::kOldLogProbs)));
      move(*weights_);
      update(left, rows, move);
      if (leaves) leave_and_return();
      move(*weights_);
    }
    sample(left, 900, move);
    return left;
  }

 private:
  // As a module's reside.
  void leave_and_return() {
    service_.release();
    EXPECT_GT(bytes_used("/optimizer"), 0);
    learner_.offload(away_);
    weights_->offload(away_);
    for (const model::MemoryItem& item : weights_->memory()) EXPECT_EQ(item.bytes, 0) << item.purpose;
    EXPECT_EQ(bytes_used("/optimizer"), 0);
    weights_->restore(away_);
    learner_.restore(away_);
  }

  static generate::ServiceOptions service_options() {
    generate::ServiceOptions options{.cache_blocks = 30, .max_batch_tokens = 40, .seed = 5};
    options.sampling.max_tokens = 14;
    return options;
  }

  // Two samples of each of three prompts.
  static Batch requests(int64_t first_uid) {
    std::vector<int64_t> uids, prompt_uids;
    std::vector<std::vector<int32_t>> prompts;
    for (const auto& prompt : model::testing::sequences({21, 5, 33}, 37))
      for (int sample = 0; sample < 2; ++sample) {
        uids.push_back(first_uid + static_cast<int64_t>(uids.size()));
        prompt_uids.push_back((uids.back() - first_uid) / 2);
        prompts.push_back(prompt);
      }
    Batch rows;
    rows.set(batch::kUid, uids);
    rows.set(batch::kPromptUid, prompt_uids);
    rows.set_ragged(batch::kIds, prompts);
    return rows;
  }

  // Samples by decoding over blocks and a prefix cache that outlive every move.
  Batch sample(Left& left, int64_t first_uid, const Move& move) {
    const Batch asked = requests(first_uid);
    service_.submit(asked);
    for (int step = 1; service_.step(); ++step)
      if (step % 4 == 0) move(*weights_);
    std::vector<rlhf::Completion> completions;
    for (int64_t r = 0; r < asked.rows(); ++r) {
      const auto prompt = asked.row(batch::kIds, r);
      completions.push_back({.uid = asked.get(batch::kUid, r), .prompt = {prompt.begin(), prompt.end()}});
    }
    for (const generate::Emission& emission : service_.take()) {
      rlhf::Completion& completion = completions.at(static_cast<size_t>(emission.uid - first_uid));
      completion.tokens = emission.tokens;
      completion.log_probs = emission.log_probs;
      completion.versions = emission.versions;
      left.emplace_back("tokens", Bits(emission.tokens.begin(), emission.tokens.end()));
      left.emplace_back("log-probs", bits_of(emission.log_probs));
    }
    return rlhf::completion_rows(completions);
  }

  void update(Left& left, const Batch& rows, const Move& move) {
    const rlhf::Loss loss = rlhf::make_loss("completions", "nll", {});
    const batch::GlobalCounts counts = train::count_rows(rows);
    weights_->zero_gradients();
    const train::UpdateReport report = learner_.accumulate(rows, rlhf::objective_of(loss), counts);
    EXPECT_EQ(static_cast<double>(report.mismatch.tokens_compared), counts.tokens);
    EXPECT_EQ(report.mismatch.log_prob_abs_max, 0);
    left.emplace_back("loss", bits_of(std::vector<float>{static_cast<float>(report.loss)}));
    left.emplace_back("gradient", bits_of(model::testing::all_gradients(*weights_)));
    move(*weights_);
    const uint64_t before = weights_->checksum();
    learner_.step(1e-2);
    EXPECT_NE(weights_->checksum(), before);
    for (int s = 0; s < weights_->segments(); ++s) left.emplace_back("weights", bits_of(weights_->master(s).span()));
    service_.update(weights_->version());
  }

  std::shared_ptr<Weights> weights_;
  model::Model model_;
  generate::Service service_;
  train::Learner learner_;
  tensor::AwayFile away_{std::filesystem::temp_directory_path()};
};

void expect_equal(const Left& moved, const Left& undisturbed, const std::string& what) {
  ASSERT_EQ(moved.size(), undisturbed.size()) << what;
  for (size_t i = 0; i < moved.size(); ++i)
    EXPECT_TRUE(moved[i] == undisturbed[i]) << what << ": " << undisturbed[i].first << ", number " << i;
}

TEST(MovedWeights, BetweenAndInsidePhasesChangeNoBit) {
  using enum tensor::ComputeType;
  const std::vector<std::pair<const char*, tensor::ComputeType>> policies = {{"llama", kFloat32},
                                                                             {"llama", kBFloat16Amx},
                                                                             {"llama", kBFloat16Dot},
                                                                             {"qwen2", kFloat32},
                                                                             {"gpt2", kBFloat16Dot}};
  for (const auto& [family, compute] : policies) {
    const Left undisturbed = Policy(family, compute).learn([](Weights&) {});
    int moves = 0;
    const Left moved = Policy(family, compute).learn([&moves](Weights& weights) {
      ++moves;
      move_away_and_back(weights);
    });
    EXPECT_GT(moves, 12);
    expect_equal(moved, undisturbed, std::string(family) + " " + std::string(tensor::name_of(compute)));
  }
}

TEST(MovedWeights, AModelThatLeavesWithAllThatItKeepsGoesOnWithTheSameBits) {
  for (const auto compute : {tensor::ComputeType::kFloat32, tensor::ComputeType::kBFloat16Dot}) {
    const Left undisturbed = Policy("llama", compute).learn([](Weights&) {});
    expect_equal(Policy("llama", compute).learn([](Weights&) {}, /*leaves=*/true), undisturbed, "left");
  }
}

}  // namespace
}  // namespace collimate::test
