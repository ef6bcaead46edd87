#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <string>

#include "collimate/base/error.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/service.h"
#include "collimate/tensor/results.h"
#include "collimate/text/utf8.h"
#include "tests/support/generate/sampling_fields.h"
#include "tests/support/generate/tiny_service.h"
#include "tests/support/model/pack_sequences.h"

// A service whose requests use penalties, biases, min_tokens and stop strings, each its own mixture.
namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

class ServiceSampling : public WithMixedRequests<36> {
 protected:
  Result run(const SamplingParams& params) {
    Request request = requests_[0];
    request.params = params;
    return run_all(tiny_.model, {&request, 1}, options_).at(request.uid);
  }
};

TEST_F(ServiceSampling, EveryRequestEndsForAReasonOfItsOwn) {
  std::map<Finish, int> reasons;
  for (const Request& request : requests_) {
    const Result& result = alone().at(request.uid);
    const auto tokens = static_cast<int64_t>(result.tokens.size());
    const std::string whole = tokenizer_.decode(result.tokens);
    const std::string shown = completion_text(tokenizer_, request.prompt, result.tokens, request.params);
    if (result.finish == Finish::kStop) {
      const std::vector<int32_t>& ids = request.params.stop_ids;
      const bool by_id = std::ranges::find(ids, result.tokens.back()) != ids.end();
      EXPECT_GT(tokens, request.params.min_tokens);
      EXPECT_TRUE(by_id || shown.size() < whole.size());
    } else {
      EXPECT_EQ(shown, whole);
      EXPECT_TRUE(result.finish == Finish::kEos || tokens == request.params.max_tokens);
      EXPECT_TRUE(result.finish == Finish::kLength || tokens > request.params.min_tokens);
    }
    ++reasons[result.finish];
  }
  for (const Finish finish : {Finish::kEos, Finish::kStop, Finish::kLength}) EXPECT_GT(reasons[finish], 2);
}

// An error here would end the step of all requests.
TEST_F(ServiceSampling, WhateverIsAllowedCanBeDrawnWith) {
  for (const SamplingField& field : kSamplingFields) {
    for (const auto& [value, allowed] : probes(field)) {
      if (!allowed || is_form(field)) continue;
      const SamplingParams params = SamplingParams::from_json({{field.name, value}});
      for (const uint32_t bits : run(params).log_prob_bits)
        EXPECT_TRUE(std::isfinite(std::bit_cast<float>(bits))) << field.name << " " << value;
    }
  }
}

TEST_F(ServiceSampling, SameBitsAloneAndInAnyBatch) {
  for (uint32_t trial = 0; trial < 8; ++trial) {
    const AnyBatch batch(trial, requests_, options_);
    EXPECT_EQ(run_all(tiny_.model, batch.order, batch.options), alone()) << "trial " << trial;
  }
  host::CorePool pool(3);
  TinyModel threaded(1, {&pool});
  options_.exec = {&pool};
  EXPECT_EQ(run_all(threaded.model, requests_, options_), alone());
}

TEST_F(ServiceSampling, SameBitsWithPreemption) {
  options_.cache_blocks = 9;
  const Outcome outcome = run_counted(tiny_.model, requests_, options_);
  EXPECT_GT(outcome.stats.preemptions, 0);
  EXPECT_EQ(outcome.results, alone());
}

TEST_F(ServiceSampling, SaveInTheMiddleAndLoad) {
  for (const int steps : {1, 5, 17})
    EXPECT_EQ(results_over_a_load(steps, tiny_.model, requests_, options_), alone()) << steps;
}

TEST_F(ServiceSampling, SamplesOfOnePromptKeepTheirOwnCounts) {
  share_one_prompt(requests_);
  const Outcome outcome = run_counted(tiny_.model, requests_, options_);
  EXPECT_EQ(outcome.stats.prefill_tokens, static_cast<int64_t>(requests_[0].prompt.size()));
  EXPECT_EQ(outcome.results, alone());
}

TEST_F(ServiceSampling, LogProbsAreTheOnesThatScoringComputes) { expect_scored(tiny_.model, requests_, alone()); }

// Greedy decoding by whole forwards, with the formulas written once more in float64.
TEST_F(ServiceSampling, GreedyWithPenaltiesIsWhatTheFormulasSay) {
  const SamplingParams params{.max_tokens = 40,
                              .min_tokens = 30,
                              .temperature = 0.0,
                              .presence_penalty = 0.3,
                              .frequency_penalty = 0.2,
                              .repetition_penalty = 1.2,
                              .logit_bias = {{2, 3.0}, {7, 0.5}}};
  std::vector<int32_t> ids = requests_[0].prompt;
  const auto prompt = static_cast<int64_t>(ids.size());
  for (int64_t drawn = 0; drawn < 40; ++drawn) {
    const std::span<const int32_t> whole(ids);
    const at::Tensor hidden = tiny_.model.forward(model::pack_sequences({&whole, 1}));
    const at::Tensor logits = tiny_.model.logits(hidden.slice(0, hidden.size(0) - 1).contiguous());
    const tensor::HostTensor numbers({}, logits);
    int32_t best = -1;
    double most = 0;
    for (int32_t id = 0; id < 61; ++id) {
      if (id == 2 && drawn < 30) continue;
      double x = numbers.floats()[id] + (id == 2 ? 3.0 : id == 7 ? 0.5 : 0.0);
      const auto seen = std::count(ids.begin(), ids.end(), id);
      const auto count = static_cast<double>(std::count(ids.begin() + prompt, ids.end(), id));
      if (seen > 0) x = x > 0 ? x / 1.2 : x * 1.2;
      x -= 0.2 * count + (count > 0 ? 0.3 : 0.0);
      if (best < 0 || x > most) best = id, most = x;
    }
    ids.push_back(best);
    if (best == 2) break;
  }
  const Result result = run(params);
  EXPECT_EQ(result.tokens, std::vector<int32_t>(ids.begin() + prompt, ids.end()));
  EXPECT_GT(std::set(result.tokens.begin(), result.tokens.end()).size(), 10U);
}

TEST_F(ServiceSampling, MinTokensHoldsOffWhatWouldEndAtOnce) {
  SamplingParams params;
  params.max_tokens = 20;
  params.min_tokens = 7;
  params.logit_bias = {{2, 100.0}};
  EXPECT_EQ(run(params).finish, Finish::kEos);
  EXPECT_EQ(run(params).tokens.size(), 8U);
  params.logit_bias = {{9, 100.0}};
  params.stop_ids = {9};
  EXPECT_EQ(run(params).finish, Finish::kStop);
  EXPECT_EQ(run(params).tokens.size(), 8U);
}

// Stop strings made of what the request says without any.
TEST_F(ServiceSampling, StopStringsEndWithTheTokenThatCompletesThem) {
  const PieceTokenizer letters = tiny_tokenizer({"a", "b", "ab", "c", "ba", "é"});
  options_.tokenizer = &letters;
  SamplingParams params;
  params.max_tokens = 60;
  params.ignore_eos = true;
  const std::vector<int32_t> free = run(params).tokens;
  const std::string text = letters.decode(free);
  int compared = 0;
  for (size_t begin = 0; begin < 30; ++begin) {
    const std::string stop = text.substr(begin, 1 + begin % 7);
    if (!text::is_valid_utf8(stop)) continue;
    params.stop = {"never", stop};
    const size_t first = text.find(stop);
    int64_t kept = 0;
    while (letters.decode(std::span(free).first(kept)).size() < first + stop.size()) ++kept;
    const Result result = run(params);
    EXPECT_EQ(result.finish, Finish::kStop);
    EXPECT_EQ(result.tokens, std::vector<int32_t>(free.begin(), free.begin() + kept)) << stop;
    EXPECT_EQ(completion_text(letters, requests_[0].prompt, result.tokens, params), text.substr(0, first)) << stop;
    ++compared;
  }
  EXPECT_GT(compared, 15);
}

TEST_F(ServiceSampling, BadRequestsAreNamed) {
  const auto message = [&](auto&& change) {
    Request request = requests_[0];
    change(request.params);
    Service service(tiny_.model, options_);
    try {
      service.submit(to_batch({&request, 1}));
    } catch (const base::InputError& error) {
      EXPECT_EQ(service.running(), 0);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([](SamplingParams& p) {
              p.logit_bias = {{3, 1.0}, {61, 1.0}};
            }),
            "[generate.submit, row 0] expected logit_bias of token ids in [0, 61), got 61");
  EXPECT_EQ(message([](SamplingParams& p) {
              p.stop_ids = {99, 60};
            }),
            "[generate.submit, row 0] expected stop token ids in [0, 61), got 99");
  const auto everything = [](SamplingParams& p) {
    for (int32_t id = 0; id < 61; ++id) p.stop_ids.push_back(id);
    p.max_tokens = 5;
  };
  EXPECT_EQ(message(everything), "accepted");
  EXPECT_THAT(message([&](SamplingParams& p) {
                everything(p);
                p.min_tokens = 1;
              }),
              testing::HasSubstr("expected a token that min_tokens leaves to draw"));
  options_.tokenizer = nullptr;
  EXPECT_EQ(
      message([](SamplingParams& p) { p.stop = {"x"}; }),
      "[generate.submit, row 0] expected no stop strings, as the service has no tokenizer, got \"x\"; try stop_ids, "
      "or a service with one");
}

}  // namespace
}  // namespace collimate::generate
