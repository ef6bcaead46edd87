#include "collimate/generate/sampler_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "collimate/base/philox.h"
#include "collimate/tensor/ops/sample.h"
#include "tests/support/generate/draw_token.h"

namespace collimate::generate {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int32_t kVocabulary = 12;
const std::vector<int32_t> kEos = {2};
const std::vector<int32_t> kIds = {5, 5, 7, 0, 1, 1, 3, 1, 7};  // prompt 5 5 7 0, then the completion
constexpr int64_t kPrompt = 4;

// Draws logits from -1.5 to 3, none of them a nice number.
std::vector<float> some_logits(uint64_t seed = 3) {
  std::vector<float> logits(kVocabulary);
  for (int32_t i = 0; i < kVocabulary; ++i) {
    logits[i] = 4.5F * base::uniform(seed, 1, 1, static_cast<uint32_t>(i)) - 1.5F;
  }
  return logits;
}

LogitHistory history_of(const SamplingParams& params) {
  LogitHistory history;
  history.start(params, kEos, kIds, kPrompt);
  return history;
}

int64_t times(int32_t id, int64_t begin, int64_t end) {
  return std::count(kIds.begin() + begin, kIds.begin() + end, id);
}

// The formulas in float64, one function for each stage.
using Reference = std::function<double(const SamplingParams&, int32_t id, double logit)>;

double min_tokens_reference(const SamplingParams& params, int32_t id, double x) {
  const bool ends = id == kEos[0] || std::count(params.stop_ids.begin(), params.stop_ids.end(), id) > 0;
  return ends && static_cast<int64_t>(kIds.size()) - kPrompt < params.min_tokens ? -kInfinity : x;
}
double bias_reference(const SamplingParams& params, int32_t id, double x) {
  return params.logit_bias.contains(id) ? x + params.logit_bias.at(id) : x;
}
double repetition_reference(const SamplingParams& params, int32_t id, double x) {
  if (times(id, 0, static_cast<int64_t>(kIds.size())) == 0) return x;
  return x > 0 ? x / params.repetition_penalty : x * params.repetition_penalty;
}
double generated_reference(const SamplingParams& params, int32_t id, double x) {
  const auto count = static_cast<double>(times(id, kPrompt, static_cast<int64_t>(kIds.size())));
  return x - count * params.frequency_penalty - (count > 0 ? params.presence_penalty : 0.0);
}
const Reference kReferences[] = {min_tokens_reference, bias_reference, repetition_reference, generated_reference};

SamplingParams all_stages() {
  SamplingParams params;
  params.min_tokens = 6;
  params.stop_ids = {4, 99};
  params.logit_bias = {{0, 1.7}, {6, -2.3}, {11, 0.4}};
  params.repetition_penalty = 1.3;
  params.frequency_penalty = 0.35;
  params.presence_penalty = 0.6;
  return params;
}

TEST(LogitStages, EachIsExactAgainstFloat64) {
  const SamplingParams params = all_stages();
  const LogitHistory history = history_of(params);
  ASSERT_EQ(logit_stages().size(), std::size(kReferences));
  for (size_t s = 0; s < std::size(kReferences); ++s) {
    const LogitStage& stage = logit_stages()[s];
    EXPECT_TRUE(stage.active(params, history)) << stage.name;
    const std::vector<float> before = some_logits();
    std::vector<float> after = before;
    std::vector<tensor::LogitEdit> edits;
    stage.add_edits(params, history, edits);
    tensor::edit_logits(edits, after);
    EXPECT_NE(after, before) << stage.name;
    for (int32_t id = 0; id < kVocabulary; ++id) {
      EXPECT_EQ(after[id], static_cast<float>(kReferences[s](params, id, before[id]))) << stage.name << " " << id;
    }
  }
}

TEST(LogitStages, RunInTheOrderOfTheirList) {
  const SamplingParams params = all_stages();
  const LogitHistory history = history_of(params);
  std::vector<float> logits = some_logits(), want = logits;
  tensor::edit_logits(logit_edits(params, history), logits);
  for (const Reference& reference : kReferences) {
    for (int32_t id = 0; id < kVocabulary; ++id) want[id] = static_cast<float>(reference(params, id, want[id]));
  }
  EXPECT_EQ(logits, want);
}

TEST(LogitStages, ParametersThatChangeNothingCostNothing) {
  SamplingParams params;
  params.temperature = 0.5;
  params.top_p = 0.9;
  params.stop_ids = {4};
  params.stop = {"x"};
  LogitHistory history = history_of(params);
  EXPECT_TRUE(logit_edits(params, history).empty());
  EXPECT_TRUE(history.generated.empty() && history.ends.empty());
  params.min_tokens = 6;
  history = history_of(params);
  EXPECT_FALSE(logit_edits(params, history).empty()) << "5 tokens so far";
  history.append(1);
  EXPECT_TRUE(logit_edits(params, history).empty());
}

TEST(LogitHistory, PromptIsSeenAndTheCompletionCounted) {
  const SamplingParams params = all_stages();
  LogitHistory history = history_of(params);
  EXPECT_EQ(history.generated, (std::unordered_map<int32_t, int32_t>{{5, 0}, {7, 1}, {0, 0}, {1, 3}, {3, 1}}));
  EXPECT_EQ(history.completion_tokens, 5);
  EXPECT_EQ(history.ends, (std::vector<int32_t>{2, 4, 99}));
  LogitHistory grown;
  grown.start(params, kEos, std::span(kIds).first(kPrompt), kPrompt);
  for (size_t t = kPrompt; t < kIds.size(); ++t) grown.append(kIds[t]);
  EXPECT_EQ(grown.generated, history.generated);
  EXPECT_EQ(grown.completion_tokens, history.completion_tokens);
}

// softmax((logits after all stages) / temperature) and what truncation leaves of it, in float64.
std::vector<double> distribution(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<double> p(kVocabulary);
  for (int32_t id = 0; id < kVocabulary; ++id) {
    double x = logits[id];
    for (const Reference& reference : kReferences) x = reference(params, id, x);
    p[id] = std::exp(x / params.temperature);
  }
  std::vector<int32_t> rank(kVocabulary);
  std::iota(rank.begin(), rank.end(), 0);
  std::stable_sort(rank.begin(), rank.end(), [&](int32_t a, int32_t b) { return p[a] > p[b]; });
  const auto kept = params.top_k > 0 ? params.top_k : kVocabulary;
  double total = 0, sum = 0;
  for (int64_t r = 0; r < kept; ++r) total += p[rank[r]];
  const double least = p[rank[0]] * params.min_p;
  for (int64_t r = 0; r < kVocabulary; ++r) {
    double& mass = p[rank[r]];
    const bool out = r >= kept || sum >= params.top_p * total;
    sum += out ? 0 : mass;
    if (out || mass < least) mass = 0;
  }
  const double norm = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& mass : p) mass /= norm;
  return p;
}

// Pearson's statistic over the bound that it stays below 999 times of 1000 (Wilson and Hilferty 1931).
double chi_square_ratio(const std::vector<int64_t>& counts, const std::vector<double>& p) {
  const auto draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double statistic = 0, degrees = -1;
  for (size_t id = 0; id < p.size(); ++id) {
    if (p[id] == 0 && counts[id] > 0) return kInfinity;
    if (p[id] == 0) continue;
    statistic += std::pow(static_cast<double>(counts[id]) - draws * p[id], 2) / (draws * p[id]);
    ++degrees;
  }
  const double part = 2 / (9 * degrees);
  return statistic / (degrees * std::pow(1 - part + 3.09 * std::sqrt(part), 3));
}

TEST(DrawToken, FollowsTheDistributionOfEveryStage) {
  using P = SamplingParams;
  const std::map<std::string, void (*)(P&)> cases = {
      {"none", [](P&) {}},
      {"temperature", [](P& p) { p.temperature = 0.7; }},
      {"top_k", [](P& p) { p.top_k = 5; }},
      {"top_p", [](P& p) { p.top_p = 0.8; }},
      {"min_p", [](P& p) { p.min_p = 0.2; }},
      {"min_tokens", [](P& p) { p.min_tokens = 9, p.stop_ids = {4}; }},
      {"logit_bias",
       [](P& p) {
         p.logit_bias = {{0, 0.5}, {9, -1.0}};
       }},
      {"repetition_penalty", [](P& p) { p.repetition_penalty = 1.4; }},
      {"frequency_penalty", [](P& p) { p.frequency_penalty = -0.3; }},
      {"presence_penalty", [](P& p) { p.presence_penalty = 0.5; }},
      {"all",
       [](P& p) {
         p = all_stages();
         p.temperature = 1.2, p.top_k = 9, p.top_p = 0.95, p.min_p = 0.02;
       }},
  };
  const std::vector<float> logits = some_logits();
  const std::vector<double> plain = distribution(logits, {});
  for (const auto& [name, change] : cases) {
    SamplingParams params;
    change(params);
    const LogitHistory history = history_of(params);
    std::vector<int64_t> counts(kVocabulary);
    for (int64_t uid = 0; uid < 20000; ++uid) ++counts[draw_token(logits, params, history, {7, uid, 9}).token];
    EXPECT_LT(chi_square_ratio(counts, distribution(logits, params)), 1) << name;
    const double from_plain = chi_square_ratio(counts, plain);
    EXPECT_TRUE(name == "none" || from_plain > 2) << name << " changes nothing: " << from_plain;
  }
}

TEST(DrawToken, LogProbIsThatOfTheLogitsBeforeTheStages) {
  const std::vector<float> logits = some_logits();
  for (const double temperature : {1.0, 0.7, 0.0}) {
    SamplingParams params = all_stages();
    params.temperature = temperature;
    const LogitHistory history = history_of(params);
    for (int64_t uid = 0; uid < 50; ++uid) {
      const Drawn drawn = draw_token(logits, params, history, {7, uid, 9});
      const float want = tensor::row_log_prob(logits.data(), kVocabulary, static_cast<float>(temperature), drawn.token);
      EXPECT_EQ(std::memcmp(&drawn.log_prob, &want, sizeof(want)), 0) << temperature;
    }
  }
}

TEST(DrawToken, GreedyTakesTheMaximumAfterTheStages) {
  std::vector<float> logits(kVocabulary, 0.0F);
  logits[1] = 3.0F;  // generated three times
  logits[6] = 2.5F;
  SamplingParams params;
  params.temperature = 0.0;
  EXPECT_EQ(draw_token(logits, params, history_of(params), {}).token, 1);
  params.frequency_penalty = 0.2;
  EXPECT_EQ(draw_token(logits, params, history_of(params), {}).token, 6);
  params.logit_bias = {{6, -2.6}, {10, 100.0}};
  EXPECT_EQ(draw_token(logits, params, history_of(params), {}).token, 10);
  params.stop_ids = {10, 1};
  params.min_tokens = 6;
  EXPECT_EQ(draw_token(logits, params, history_of(params), {}).token, 0) << "the lowest of the zeros";
}

}  // namespace
}  // namespace collimate::generate
