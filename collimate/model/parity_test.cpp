// One forward for training, scoring and generation: equality of bits, not closeness.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <tuple>

#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::all_gradients;
using testing::pack;
using testing::sequences;
using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

enum class AdapterKind { kNone, kLora, kDora };

// Tests take every small model, by the word for its type in computing, as it is and with adapters.
class Parity : public ::testing::TestWithParam<std::tuple<std::string, const char*, AdapterKind>> {
 protected:
  static ComputeType compute() { return tensor::compute_type_of(std::get<1>(GetParam())); }
  static LoraOptions lora() {
    const AdapterKind kind = std::get<2>(GetParam());
    return {.rank = kind == AdapterKind::kNone ? 0 : 3, .alpha = 2, .dora = kind == AdapterKind::kDora};
  }

  shape::ModelShape shape_ = tiny_shape(std::get<0>(GetParam()));
  std::shared_ptr<Weights> weights_ = tiny_weights(shape_, {.trained = true, .compute = compute(), .lora = lora()});
  Model model_{weights_, {}};
  std::vector<std::vector<int32_t>> sequences_ = sequences({33, 1, 16, 50, 17}, 37);
};

std::vector<float> rows(const at::Tensor& hidden, int64_t first, int64_t count) {
  const auto all = to_vector(hidden);
  const auto width = static_cast<int64_t>(all.size()) / hidden.size(0);
  return {all.begin() + first * width, all.begin() + (first + count) * width};
}

TEST_P(Parity, PackedSequencesEqualOneByOne) {
  const TokenBatch batch = pack(sequences_);
  const at::Tensor together = model_.forward(batch);
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const auto alone = to_vector(model_.forward(pack({sequences_[i]})));
    EXPECT_EQ(alone, rows(together, batch.starts[i], static_cast<int64_t>(sequences_[i].size()))) << i;
  }
}

TEST_P(Parity, TrainingAndRecomputeEqualScoring) {
  const TokenBatch batch = pack(sequences_);
  const auto scored = to_vector(model_.forward(batch));
  std::unique_ptr<ForwardRecord> record;
  EXPECT_EQ(to_vector(model_.forward_train(batch, Recompute::kNone, record)), scored);
  EXPECT_EQ(to_vector(model_.forward_train(batch, Recompute::kSelective, record)), scored);
  EXPECT_EQ(to_vector(model_.forward_train(batch, Recompute::kFull, record)), scored);
}

// Prefill in uneven pieces, then decode token by token in a batch whose other rows change; blocks are scattered.
TEST_P(Parity, CachedEqualsUncached) {
  const TokenBatch batch = pack(sequences_);
  const auto whole = to_vector(model_.forward(batch));
  KvCache cache(shape_, kv_type(compute()), 40);
  std::vector<std::vector<int32_t>> tables;
  for (int32_t s = 0; s < static_cast<int32_t>(sequences_.size()); ++s) tables.push_back({s + 35, s + 5, s, s + 20});
  std::vector<float> pieces(whole.size());
  const size_t width = whole.size() / batch.ids.size();
  std::vector<size_t> done(sequences_.size(), 0);
  for (size_t round = 0; round < 60; ++round) {
    TokenBatch step;
    step.starts.push_back(0);
    std::vector<std::vector<int32_t>> used;
    std::vector<size_t> targets;
    for (size_t s = 0; s < sequences_.size(); ++s) {
      if (round == 1 && s % 2 == 0) continue;  // joins later
      const size_t count = std::min(round == 0 ? 9 * s + 1 : 1, sequences_[s].size() - done[s]);
      if (count == 0) continue;
      for (size_t i = 0; i < count; ++i, ++done[s]) {
        step.ids.push_back(sequences_[s][done[s]]);
        step.positions.push_back(static_cast<int32_t>(done[s]));
        targets.push_back(static_cast<size_t>(batch.starts[s]) + done[s]);
      }
      step.starts.push_back(static_cast<int32_t>(step.ids.size()));
      used.push_back(tables[s]);
    }
    if (step.ids.empty()) break;
    const auto hidden = to_vector(model_.forward_cached(step, cache, used));
    for (size_t row = 0; row < targets.size(); ++row)
      std::memcpy(&pieces[targets[row] * width], &hidden[row * width], width * sizeof(float));
  }
  EXPECT_EQ(pieces, whole);
}

// Two samples read the full blocks of one prompt and write into blocks of their own, as generation shares them.
TEST_P(Parity, SharedPromptBlocksEqualOwnOnes) {
  const auto& sequence = sequences_[0];
  const auto whole = to_vector(model_.forward(pack({sequence})));
  KvCache cache(shape_, kv_type(compute()), 8);
  const std::vector<int32_t> first = {5, 1, 6}, second = {5, 1, 3};
  const std::vector<int32_t> prompt(sequence.begin(), sequence.begin() + 32);
  model_.forward_cached(pack({prompt}), cache, {&first, 1});
  const TokenBatch step = {{sequence[32], sequence[32]}, {32, 32}, {0, 1, 2}};
  const std::vector<std::vector<int32_t>> tables = {first, second};
  const auto hidden = to_vector(model_.forward_cached(step, cache, tables));
  const size_t width = hidden.size() / 2;
  for (size_t i = 0; i < 2 * width; ++i) EXPECT_EQ(hidden[i], whole[32 * width + i % width]);
}

// Attention sees distances alone: with positions turned, a sequence that begins at 7 is the same but for rounding,
// which in bf16 may have a token of a mixture pass another expert; with learned ones, and where norms weigh channels
// that have turned, it is another. Its continuation begins where it ends.
TEST_P(Parity, ASequenceMayBeginAtAnyPosition) {
  const auto sequence = sequences({24}, 37).front();
  TokenBatch shifted = pack({sequence});
  for (int32_t& position : shifted.positions) position += 7;
  const auto there = to_vector(model_.forward(shifted)), here = to_vector(model_.forward(pack({sequence})));
  std::set<size_t> moved;  // tokens
  for (size_t i = 0; i < there.size(); ++i)
    if (std::abs(there[i] - here[i]) > 0.3F) moved.insert(i * sequence.size() / there.size());
  const size_t other_experts = is_bf16(compute()) && shape::routers_of(shape_) > 0 ? 2 : 0;
  const bool absolute = shape_.learned_positions || shape_.blocks.front().attention.norm_behind_turn;
  EXPECT_EQ(moved.size() > other_experts, absolute) << moved.size();
  TokenBatch parts = shifted;
  parts.starts = {0, 20, 24};
  parts.continued = {-1, 0};
  EXPECT_EQ(to_vector(model_.forward(parts)), there);
  const auto to_limit = static_cast<int32_t>(shape_.max_positions) - 24 - 7;
  for (int32_t& position : shifted.positions) position += to_limit;
  EXPECT_NO_THROW(model_.forward(shifted));
  for (int32_t& position : shifted.positions) ++position;
  EXPECT_THROW(model_.forward(shifted), base::InputError);
}

// Samples packed behind their prompt, once for all of them, against each with a prompt of its own: the same bits, and
// the same gradients but for the order of sums.
TEST_P(Parity, ContinuedSequencesEqualWholeOnes) {
  const auto samples = sequences({20, 1, 33}, 37);
  const auto prompt = sequences({0, 0, 0, 21}, 37).back();
  TokenBatch shared = pack({prompt});
  shared.continued = {-1};
  std::vector<std::vector<int32_t>> whole(samples.size(), prompt);
  std::vector<int64_t> own;  // of the whole ones: the row of the shared pack that each repeats
  for (size_t s = 0; s < samples.size(); ++s) {
    for (int64_t t = 0; t < 21; ++t) own.push_back(t);
    for (size_t t = 0; t < samples[s].size(); ++t) {
      own.push_back(static_cast<int64_t>(shared.ids.size()));
      shared.ids.push_back(samples[s][t]);
      shared.positions.push_back(static_cast<int32_t>(21 + t));
    }
    shared.starts.push_back(static_cast<int32_t>(shared.ids.size()));
    shared.continued.push_back(0);
    whole[s].insert(whole[s].end(), samples[s].begin(), samples[s].end());
  }
  const at::Tensor together = model_.forward(shared), apart = model_.forward(pack(whole));
  for (size_t row = 0; row < own.size(); ++row)
    EXPECT_EQ(rows(apart, static_cast<int64_t>(row), 1), rows(together, own[row], 1)) << row;

  std::vector<float> gradients[2];
  for (const bool as_whole : {false, true}) {
    weights_->zero_gradients();
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model_.forward_train(as_whole ? pack(whole) : shared, Recompute::kFull, record);
    at::Tensor slope = hidden.clone();
    for (size_t row = 0; as_whole && row < own.size(); ++row)
      if (own[row] < 21 && row >= 21) slope[static_cast<int64_t>(row)].zero_();  // the prompt counts once
    model_.backward(std::move(record), slope);
    gradients[as_whole] = all_gradients(*weights_);
  }
  double difference = 0, norm = 0;
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    difference += std::pow(gradients[0][i] - gradients[1][i], 2);
    norm += std::pow(gradients[1][i], 2);
  }
  // A prompt's gradients are summed before they are rounded to bf16, or after; those of adapters twice.
  const double tolerance = compute() == ComputeType::kFloat32 ? 1e-5 : lora().on() ? 2e-2 : 5e-3;
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm));
}

TEST_P(Parity, PositionsBeyondTheModelAreRefused) {
  KvCache cache(shape_, kv_type(compute()), 8);
  const std::vector<int32_t> table = {0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(base::message_of([&] {
              model_.forward_cached({{1}, {96}, {0, 1}}, cache, {&table, 1});
            }),
            "[model positions] expected fewer than 96, got 97; try shorter sequences");
}

TEST_P(Parity, LogProbsEqualLogits) {
  const at::Tensor hidden = model_.forward(pack(sequences_));
  const auto logits = to_vector(model_.logits(hidden));
  LogProbRequest request{hidden, std::vector<int32_t>(static_cast<size_t>(hidden.size(0)), 5)};
  const LogProbResult result = model_.log_probs(request);
  const auto log_probs = to_vector(result.log_probs);
  for (size_t row = 0; row < log_probs.size(); ++row) {
    double sum = 0;
    for (size_t v = 0; v < 37; ++v) sum += std::exp(static_cast<double>(logits[row * 37 + v]));
    EXPECT_NEAR(log_probs[row], logits[row * 37 + 5] - std::log(sum), 2e-6);
  }
}

TEST_P(Parity, GradientsDoNotDependOnRecompute) {
  const TokenBatch batch = pack(sequences_);
  std::vector<float> gradients[3];
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    weights_->zero_gradients();
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model_.forward_train(batch, recompute, record);
    std::vector<int> done;
    model_.backward(std::move(record), hidden, [&](int segment) { done.push_back(segment); });
    std::vector<int> all = {3, 2, 1, 0};
    if (lora().on()) all.push_back(4);  // adapters of all blocks
    EXPECT_EQ(done, all);
    gradients[static_cast<int>(recompute)] = all_gradients(*weights_);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(gradients[0], gradients[2]);
  EXPECT_NE(gradients[0], std::vector<float>(gradients[0].size(), 0));
}

TEST_P(Parity, MovedWeightsGiveTheSameBits) {
  const TokenBatch batch = pack(sequences_);
  const auto before = to_vector(model_.forward(batch));
  tensor::AwayFile away(std::filesystem::temp_directory_path());
  weights_->offload(away);
  EXPECT_THROW(model_.forward(batch), base::GuardError);
  for (const auto& item : weights_->memory()) EXPECT_EQ(item.bytes, 0) << item.purpose;
  model_.release();
  weights_->restore(away);
  EXPECT_EQ(to_vector(model_.forward(batch)), before);
  const auto scale = [&](float by) {
    for (float& value : weights_->master(weights_->changing_segments().front())) value *= by;
    weights_->commit();
  };
  scale(2);
  const auto changed = to_vector(model_.forward(batch));
  EXPECT_NE(changed, before);
  weights_->offload(away);
  weights_->restore(away);
  EXPECT_EQ(to_vector(model_.forward(batch)), changed);
  scale(0.5F);
  EXPECT_EQ(to_vector(model_.forward(batch)), before);
}

// Training, scoring and generation read one copy of the weights.
TEST_P(Parity, EveryUseReadsTheSameAddresses) {
  const int index = 0;  // the embedding, which is the head of a tied model
  const auto addresses = [&] { return std::vector<const void*>{weights_->param(index), weights_->panels(index).data}; };
  const TokenBatch batch = pack(sequences_);
  model_.logits(model_.forward(batch));
  const auto scoring = addresses();
  KvCache cache(shape_, kv_type(compute()), 8);
  const std::vector<int32_t> table = {0, 1, 2};
  model_.logits(model_.forward_cached(pack({sequences_[0]}), cache, {&table, 1}));
  const auto generating = addresses();
  std::unique_ptr<ForwardRecord> record;
  model_.logits(model_.forward_train(batch, Recompute::kNone, record));
  const auto training = addresses();
  std::printf("scoring %p %p, generation %p %p, training %p %p\n", scoring[0], scoring[1], generating[0], generating[1],
              training[0], training[1]);
  EXPECT_EQ(scoring, generating);
  EXPECT_EQ(scoring, training);
}

// Other threads give no other bits.
TEST_P(Parity, ThreadsChangeNoBit) {
  host::CorePool pool(2);
  Model threaded(weights_, {&pool});
  const TokenBatch batch = pack(sequences_);
  EXPECT_EQ(to_vector(threaded.forward(batch)), to_vector(model_.forward(batch)));
  std::vector<float> gradients[2];
  for (Model* model : {&model_, &threaded}) {
    weights_->zero_gradients();
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model->forward_train(batch, Recompute::kNone, record);
    model->backward(std::move(record), hidden);
    gradients[model == &threaded] = all_gradients(*weights_);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         ::testing::Combine(::testing::ValuesIn(testing::tiny_models()),
                                            ::testing::Values("float32", "bfloat16_amx", "bfloat16_dot"),
                                            ::testing::Values(AdapterKind::kNone, AdapterKind::kLora)));

// Models that differ in how layers run: as one, with biases, with rows in another order, beside experts, by latents.
INSTANTIATE_TEST_SUITE_P(Decomposed, Parity,
                         ::testing::Combine(::testing::Values("llama", "gpt2", "qwen2", "gpt_neox", "olmo2",
                                                              "qwen2_moe", "deepseek_v3"),
                                            ::testing::Values("float32", "bfloat16_amx", "bfloat16_dot"),
                                            ::testing::Values(AdapterKind::kDora)));

}  // namespace
}  // namespace collimate::model
