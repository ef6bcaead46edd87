#include "collimate/cli/int8_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/generate/engine.h"
#include "collimate/generate/prompt_score.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::cli {
namespace {

using namespace generate::testing_support;  // NOLINT: test only

std::vector<float> scored(model::Model& model, const std::vector<int32_t>& ids) {
  generate::PromptScore score(model, ids, 1.0);
  EXPECT_TRUE(score.advance(1000));
  return score.log_probs().log_probs;
}

TEST(Int8Error, IsTheDifferenceToFloat32AndLeavesTheModelAsItWas) {
  TinyModel exact(1), rounded(1, {}, tensor::ComputeType::kInt8);
  const PieceTokenizer tokenizer = tiny_tokenizer({"a"});  // has no bos and says of no eos: texts begin with id 0
  const auto requests = random_requests(6, 2);
  const Results before = run_all(rounded.model, requests, {});
  const std::optional<Int8Error> error = measured_int8(rounded.model, {}, tokenizer, true);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(run_all(rounded.model, requests, {}), before);
  EXPECT_EQ(rounded.weights->options().compute, tensor::ComputeType::kInt8);

  generate::EngineOptions options{.samples_per_prompt = 16, .purpose = "int8.probe"};
  generate::SamplingParams params{.max_tokens = 8};
  params.ignore_eos = true;
  const std::vector<std::vector<int32_t>> start = {{0}};
  double sum = 0, most = 0;
  for (const auto& text : generate::generate_all(exact.model, start, params, options)) {
    std::vector<int32_t> ids = {0};
    ids.insert(ids.end(), text.tokens.begin(), text.tokens.end());
    const std::vector<float> a = scored(exact.model, ids), b = scored(rounded.model, ids);
    for (size_t t = 1; t < a.size(); ++t) {
      sum += std::abs(double{a[t]} - b[t]);
      most = std::max(most, std::abs(double{a[t]} - b[t]));
    }
  }
  EXPECT_EQ(error->tokens, 128);
  EXPECT_DOUBLE_EQ(error->log_prob_mean, sum / 128);
  EXPECT_EQ(error->log_prob_max, most);
  EXPECT_GT(error->log_prob_mean, 0);
  EXPECT_LT(error->log_prob_max, 1);
  EXPECT_EQ(to_json(*error)["log_prob_error_max"], most);
}

TEST(Int8Error, OfOtherTypesThereIsNoneAndLogProbsCanBeLeftOut) {
  TinyModel exact(1), rounded(1, {}, tensor::ComputeType::kInt8);
  const PieceTokenizer tokenizer = tiny_tokenizer({"a"});
  EXPECT_FALSE(measured_int8(exact.model, {}, tokenizer, true).has_value());
  const auto error = measured_int8(rounded.model, {}, tokenizer, false);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->tokens, 0);
  EXPECT_GT(error->weights.relative, 0);
  EXPECT_FALSE(to_json(*error).contains("log_prob_error_mean"));
}

}  // namespace
}  // namespace collimate::cli
