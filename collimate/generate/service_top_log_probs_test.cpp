#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "collimate/base/error.h"
#include "collimate/generate/engine.h"
#include "collimate/generate/service.h"
#include "tests/support/generate/tiny_service.h"

// The most likely tokens beside each drawn one. That they keep their bits in any batch, with preemption, speculation,
// save and load is asserted wherever the requests of mixed_requests are compared.
namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

using ServiceTopLogProbs = WithMixedRequests<24>;
using Top = std::vector<std::pair<int32_t, uint32_t>>;

// The most likely tokens that scoring gives in the places of the result's tokens.
Top scored_top(model::Model& model, const Request& request, const Result& result) {
  Top top;
  const auto tokens = scored(model, request, result, request.params.top_log_probs).top;
  for (const TokenLogProb& one : tokens) top.emplace_back(one.token, std::bit_cast<uint32_t>(one.log_prob));
  return top;
}

// Penalties, biases, min_tokens and truncation of the requests leave them as they are.
TEST_F(ServiceTopLogProbs, AreTheOnesThatScoringComputes) {
  const Results results = run_all(tiny_.model, requests_, options_);
  size_t asked = 0;
  for (const Request& request : requests_) {
    const Result& result = results.at(request.uid);
    EXPECT_EQ(result.top, scored_top(tiny_.model, request, result)) << "uid " << request.uid;
    asked += result.top.size();
  }
  EXPECT_GT(asked, 200U);
}

TEST_F(ServiceTopLogProbs, ChangeNoDraw) {
  Results with = run_all(tiny_.model, requests_, options_);
  for (Request& request : requests_) request.params.top_log_probs = 0;
  const Results without = run_all(tiny_.model, requests_, options_);
  for (auto& [uid, result] : with) result.top.clear();
  EXPECT_EQ(with, without);
}

TEST_F(ServiceTopLogProbs, AGreedyDrawIsTheFirstOfThem) {
  const std::vector<std::vector<int32_t>> prompts = {{3, 4, 5}, {7}};
  const SamplingParams params{.max_tokens = 12, .temperature = 0.0, .ignore_eos = true, .top_log_probs = 3};
  for (const Completion& completion : generate_all(tiny_.model, prompts, params)) {
    ASSERT_EQ(completion.top_log_probs.size(), 36U);
    for (size_t i = 0; i < 12; ++i) {
      const auto top = top_of(completion.top_log_probs, 12, i);
      EXPECT_EQ(top[0].token, completion.tokens[i]);
      EXPECT_EQ(top[0].log_prob, completion.log_probs[i]);
      EXPECT_GE(top[0].log_prob, top[1].log_prob);
      EXPECT_GE(top[1].log_prob, top[2].log_prob);
    }
  }
}

TEST_F(ServiceTopLogProbs, MoreThanTheMostAreRefused) {
  Request request = requests_[0];
  Service service(tiny_.model, options_);
  for (const int64_t wrong : {-1, 21}) {
    request.params.top_log_probs = wrong;
    try {
      service.submit(to_batch({&request, 1}));
      ADD_FAILURE() << "accepted " << wrong;
    } catch (const base::InputError& error) {
      EXPECT_EQ(error.what(), "[sampling.top_logprobs] expected an integer in [0, 20], got " + std::to_string(wrong));
    }
  }
  // Parameters that are the service's own have been through no JSON.
  options_.sampling.top_log_probs = 21;
  Batch bare(1);
  bare.set(batch::kUid, std::vector<int64_t>{1});
  bare.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{{3, 4}});
  Service strict(tiny_.model, options_);
  EXPECT_THROW(strict.submit(bare), base::InputError);
}

// A vocabulary of fewer tokens than were asked for.
TEST(TopLogProbsOfASmallVocabulary, AreAllOfIt) {
  shape::ModelShape shape = tiny_shape();
  shape.vocabulary = 5;
  const auto weights = std::make_shared<model::Weights>(shape, model::WeightsOptions{}, tensor::Exec{});
  weights->initialize(1, 0.3F);
  model::Model model(weights, {});
  const std::vector<std::vector<int32_t>> prompts = {{3, 4}};
  const SamplingParams params{.max_tokens = 4, .ignore_eos = true, .top_log_probs = 20};
  const auto completions = generate_all(model, prompts, params);
  ASSERT_EQ(completions[0].top_log_probs.size(), 20U);
  for (size_t i = 0; i < 4; ++i) {
    std::vector<int32_t> ids;
    for (const TokenLogProb& one : top_of(completions[0].top_log_probs, 4, i)) ids.push_back(one.token);
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 2, 3, 4}));
  }
}

}  // namespace
}  // namespace collimate::generate
