#include "collimate/generate/prompt_score.h"

#include <gtest/gtest.h>

#include "collimate/tensor/results.h"
#include "tests/support/generate/tiny_service.h"
#include "tests/support/model/pack_sequences.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

std::vector<int32_t> some_ids(size_t count) {
  std::vector<int32_t> ids(count);
  for (uint32_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>(base::random_bits(8, 1, 2, i) % 61);
  return ids;
}

std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  if (!bits.empty()) std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

PromptLogProbs in_pieces(model::Model& model, std::span<const int32_t> ids, double temperature, int64_t piece,
                         int64_t top) {
  PromptScore score(model, ids, temperature, top);
  while (!score.advance(piece)) continue;
  EXPECT_TRUE(score.advance(piece)) << "it stays complete";
  return score.log_probs();
}

TEST(PromptScore, ThePiecesHaveTheBitsOfTheWhole) {
  for (const auto compute : {tensor::ComputeType::kFloat32, tensor::ComputeType::kBFloat16Dot}) {
    TinyModel tiny(1, {}, compute);
    for (const size_t length : {2U, 16U, 17U, 50U, 160U}) {
      const std::vector<int32_t> ids = some_ids(length);
      const std::span<const int32_t> whole(ids);
      const at::Tensor hidden = tiny.model.forward(model::pack_sequences({&whole, 1}));
      const auto expected = tiny.model.log_probs({.hidden = hidden.slice(0, 0, hidden.size(0) - 1).contiguous(),
                                                  .targets = {ids.begin() + 1, ids.end()},
                                                  .temperature = 0.5F,
                                                  .top_count = 3});
      const std::vector<uint32_t> bits = bits_of(tensor::HostTensor({}, expected.log_probs).floats());
      for (const int64_t piece : {1, 7, 16, 1000}) {
        const PromptLogProbs got = in_pieces(tiny.model, ids, 0.5, piece, 3);
        ASSERT_EQ(got.log_probs.size(), length);
        EXPECT_EQ(got.log_probs[0], 0.F);
        EXPECT_EQ(bits_of(std::span(got.log_probs).subspan(1)), bits) << length << " tokens by " << piece;
        ASSERT_EQ(got.top_log_probs.size(), 3 * length);
        for (size_t i = 0; i < expected.top.size(); ++i) {
          EXPECT_EQ(got.top_log_probs[3 + i].token, expected.top[i].token);
          EXPECT_EQ(got.top_log_probs[3 + i].log_prob, expected.top[i].log_prob);
        }
      }
    }
  }
}

TEST(PromptScore, AServiceOnTheSameModelGoesOnBetweenThePieces) {
  TinyModel tiny;
  const auto requests = random_requests(6, 2);
  const Results alone = run_all(tiny.model, requests, {});
  const std::vector<int32_t> ids = some_ids(40);
  const PromptLogProbs whole = in_pieces(tiny.model, ids, 0, 1000, 0);
  Service service(tiny.model, {});
  service.submit(to_batch(requests));
  Results results;
  PromptScore score(tiny.model, ids, 0);
  while (!score.advance(3)) {
    EXPECT_TRUE(service.step());
    collect(service, results);
  }
  drain(service, results);
  EXPECT_EQ(results, alone);
  EXPECT_EQ(score.log_probs().log_probs, whole.log_probs);
}

TEST(PromptScore, OneTokenNeedsNoModelAndAWrongPromptIsNamed) {
  TinyModel tiny;
  PromptScore one(tiny.model, std::vector<int32_t>{5}, 1, 2);
  EXPECT_TRUE(one.advance(1));
  EXPECT_EQ(one.log_probs().log_probs, std::vector<float>{0});
  EXPECT_EQ(one.log_probs().top_log_probs.size(), 2U);
  const auto message = [&](const std::vector<int32_t>& ids) {
    try {
      PromptScore(tiny.model, ids, 1);
    } catch (const base::InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message({}), "[generate.score] expected from 1 to 160 tokens to score, got 0");
  EXPECT_EQ(message(std::vector<int32_t>(161, 3)), "[generate.score] expected from 1 to 160 tokens to score, got 161");
  EXPECT_EQ(message({3, 61}), "[generate.score] expected token ids in [0, 61), got 61");
}

}  // namespace
}  // namespace collimate::generate
