// One forward for training, scoring and generation where nothing but the order of additions decides the bits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "collimate/tensor/ops/sample.h"
#include "tests/support/model/cancelling_weights.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/tensor/kernels/with_isa.h"

namespace collimate::model {
namespace {

using testing::pack;

constexpr int64_t kTinyVocabulary = 37;
constexpr int32_t kScoredToken = 5;

class CancellingParity : public ::testing::TestWithParam<std::pair<const char*, ComputeType>> {
 protected:
  CancellingParity() {
    shape_.tied_embeddings = false;
    weights_ = testing::tiny_weights(shape_, {true, GetParam().second});
    testing::make_cancelling(*weights_);
  }

  // check(model, "avx2, threads: 2") on every instruction set of this machine, with 1 and 2 threads.
  void everywhere(const std::function<void(Model&, const std::string&)>& check) {
    for (const tensor::InstructionSet set : tensor::sets_here()) {
      const tensor::WithInstructionSet chosen(set);
      for (const int threads : {1, 2}) {
        host::CorePool pool(threads);
        weights_->commit();  // packed again, by this set
        Model model(weights_, {&pool});
        check(model, fmt::format("{}, threads: {}", tensor::name_of(set), threads));
      }
    }
  }

  // Hidden states of all tokens through the cache, at most `piece` of a sequence at a time; sequence s joins in step s.
  std::vector<float> cached(Model& model, size_t piece) {
    KvCache cache(shape_, kv_type(weights_->options().compute), 40);
    std::vector<float> all;
    std::vector<size_t> done(sequences_.size(), 0);
    for (size_t round = 0, left = batch_.ids.size(); left > 0; ++round) {
      TokenBatch step;
      step.starts.push_back(0);
      std::vector<std::vector<int32_t>> tables;
      std::vector<size_t> rows;  // of the batch
      for (size_t s = 0; s <= std::min(round, sequences_.size() - 1); ++s) {
        const size_t count = std::min(piece, sequences_[s].size() - done[s]);
        if (count == 0) continue;
        for (size_t i = 0; i < count; ++i, ++done[s], --left) {
          step.ids.push_back(sequences_[s][done[s]]);
          step.positions.push_back(static_cast<int32_t>(done[s]));
          rows.push_back(static_cast<size_t>(batch_.starts[s]) + done[s]);
        }
        step.starts.push_back(static_cast<int32_t>(step.ids.size()));
        const auto first = static_cast<int32_t>(s);
        tables.push_back({first + 35, first + 5, first, first + 20});
      }
      if (rows.empty()) continue;
      const auto hidden = testing::to_vector(model.forward_cached(step, cache, tables));
      const size_t width = hidden.size() / rows.size();
      all.resize(width * batch_.ids.size());
      for (size_t row = 0; row < rows.size(); ++row)
        std::memcpy(&all[rows[row] * width], &hidden[row * width], width * sizeof(float));
    }
    return all;
  }

  shape::ModelShape shape_ = testing::tiny_shape(GetParam().first);
  std::shared_ptr<Weights> weights_;
  std::vector<std::vector<int32_t>> sequences_ = testing::sequences({33, 1, 16, 50, 17}, kTinyVocabulary);
  TokenBatch batch_ = pack(sequences_);
};

TEST_P(CancellingParity, OneSetOfHiddenStates) {
  std::vector<float> first;
  everywhere([&](Model& model, const std::string& where) {
    const auto whole = testing::to_vector(model.forward(batch_));
    if (first.empty()) first = whole;
    EXPECT_TRUE(whole == first) << where;
    const size_t width = whole.size() / batch_.ids.size();
    for (size_t s = 0; s < sequences_.size(); ++s) {
      const auto alone = testing::to_vector(model.forward(pack({sequences_[s]})));
      const float* packed = whole.data() + static_cast<size_t>(batch_.starts[s]) * width;
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), packed)) << where << ", sequence " << s;
    }
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      std::unique_ptr<ForwardRecord> record;
      EXPECT_TRUE(testing::to_vector(model.forward_train(batch_, recompute, record)) == whole) << where;
    }
    for (const size_t piece : {1, 7, 20})
      EXPECT_TRUE(cached(model, piece) == whole) << where << ", pieces of " << piece;
  });
  const auto dull = std::count_if(first.begin(), first.end(), [](float x) { return x == 0 || !std::isfinite(x); });
  EXPECT_LT(dull, static_cast<std::ptrdiff_t>(first.size() / 4)) << "the case would show nothing";
}

// Scored together, scored one by one, and drawn from logits.
TEST_P(CancellingParity, OneSetOfLogProbs) {
  std::vector<float> first;
  everywhere([&](Model& model, const std::string& where) {
    const at::Tensor hidden = model.forward(batch_);
    const auto tokens = static_cast<size_t>(hidden.size(0));
    const auto together =
        testing::to_vector(model.log_probs({hidden, std::vector<int32_t>(tokens, kScoredToken)}).log_probs);
    if (first.empty()) first = together;
    EXPECT_TRUE(together == first) << where;
    for (size_t t = 0; t < tokens; t += 9) {
      const at::Tensor row = hidden.slice(0, static_cast<int64_t>(t), static_cast<int64_t>(t) + 1);
      EXPECT_EQ(testing::to_vector(model.log_probs({row, {kScoredToken}}).log_probs)[0], together[t]) << where;
      const auto logits = testing::to_vector(model.logits(row));
      EXPECT_EQ(tensor::row_log_prob(logits.data(), kTinyVocabulary, 1.0F, kScoredToken), together[t]) << where;
    }
  });
  const auto dull = std::count_if(first.begin(), first.end(), [](float x) {
    return !std::isfinite(x) || std::abs(x + std::log(static_cast<float>(kTinyVocabulary))) < 1e-3F;
  });
  EXPECT_LT(dull, static_cast<std::ptrdiff_t>(first.size() / 4)) << "the case would show nothing";
}

INSTANTIATE_TEST_SUITE_P(
    Families, CancellingParity,
    ::testing::Values(std::pair{"llama", ComputeType::kFloat32}, std::pair{"llama", ComputeType::kBFloat16Amx},
                      std::pair{"llama", ComputeType::kBFloat16Dot}, std::pair{"gpt2", ComputeType::kFloat32},
                      std::pair{"gpt2", ComputeType::kBFloat16Dot}),
    [](const auto& model) { return std::string(model.param.first) + "_" + std::string(name_of(model.param.second)); });

}  // namespace
}  // namespace collimate::model
