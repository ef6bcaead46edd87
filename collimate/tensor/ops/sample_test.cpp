#include "collimate/tensor/ops/sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/ops/log_prob.h"
#include "tests/support/base/rounds.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

// How often each token comes for u = 0, 1/n, 2/n ...: its probability to within 1/n and rounding.
std::map<int32_t, double> shares(const Floats& logits, const SampleOptions& options, int draws = 2000) {
  std::map<int32_t, double> share;
  for (int i = 0; i < draws; ++i) {
    const float u = static_cast<float>(i) / static_cast<float>(draws);
    share[sample_row(logits.data(), static_cast<int64_t>(logits.size()), options, u).token] += 1.0 / draws;
  }
  return share;
}

const Floats kLogs = {std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.25F), std::log(0.05F)};

TEST(Sample, FollowsTheDistribution) {
  const auto share = shares(kLogs, {});
  for (int32_t i = 0; i < 5; ++i) EXPECT_NEAR(share.at(i), std::exp(kLogs[i]), 2e-3) << i;
  const auto hot = shares(kLogs, {.temperature = 2.0F});
  double sum = 0;
  for (const float x : kLogs) sum += std::exp(x / 2);
  for (int32_t i = 0; i < 5; ++i) EXPECT_NEAR(hot.at(i), std::exp(kLogs[i] / 2) / sum, 2e-3) << i;
}

TEST(Sample, WalksTokensInIdOrder) {
  int32_t before = 0;
  for (int i = 0; i < 100; ++i) {
    const int32_t token = sample_row(kLogs.data(), 5, {}, static_cast<float>(i) / 100.0F).token;
    EXPECT_GE(token, before);
    before = token;
  }
  EXPECT_EQ(before, 4);
}

// The running sum has to exceed u: a token's interval has its lower end and not its upper one.
TEST(Sample, ADrawAtTheBorderOfTwoTokensIsTheLaterOne) {
  const Floats equal(256, 0.0F);  // two blocks of the walk
  for (const int32_t token : {1, 2, 64, 127, 128, 129, 255}) {
    const float border = static_cast<float>(token) / 256.0F;
    EXPECT_EQ(sample_row(equal.data(), 256, {}, border).token, token);
    EXPECT_EQ(sample_row(equal.data(), 256, {}, std::nextafter(border, 0.0F)).token, token - 1);
  }
}

TEST(Sample, TopKTopPAndMinP) {
  const auto k = shares(kLogs, {.top_k = 2});
  EXPECT_EQ(k.size(), 2U);
  EXPECT_NEAR(k.at(1), 0.4 / 0.65, 2e-3);
  EXPECT_NEAR(k.at(3), 0.25 / 0.65, 2e-3);
  EXPECT_EQ(shares(kLogs, {.top_p = 0.6F}).size(), 2U);  // 0.4 + 0.25
  EXPECT_EQ(shares(kLogs, {.top_p = 0.66F}).size(), 3U);
  EXPECT_EQ(shares(kLogs, {.top_p = 1e-6F}).size(), 1U);
  EXPECT_EQ(shares(kLogs, {.min_p = 0.45F}).size(), 3U);  // at least 0.18
  EXPECT_EQ(shares(kLogs, {.top_k = 3, .top_p = 0.7F, .min_p = 0.9F}).size(), 1U);
}

TEST(Sample, TopPKeepsTheSmallestSetThatReachesIt) {
  for (int seed = 1; seed <= base::rounds(6); ++seed) {
    const Floats x = noise(60, static_cast<uint32_t>(seed), 3.0F);
    std::vector<std::pair<double, int32_t>> ranked;
    double mass = 0;
    for (int32_t i = 0; i < 60; ++i) {
      ranked.emplace_back(-std::exp(static_cast<double>(x[i])), i);
      mass += std::exp(static_cast<double>(x[i]));
    }
    std::sort(ranked.begin(), ranked.end());
    const float top_p = 0.15F * static_cast<float>(seed);
    std::map<int32_t, double> want;
    double sum = 0;
    for (size_t rank = 0; rank < ranked.size() && sum < top_p * mass; ++rank) {
      want[ranked[rank].second] = -ranked[rank].first;
      sum -= ranked[rank].first;
    }
    const auto share = shares(x, {.top_p = top_p}, 4000);
    for (const auto& [token, weight] : want) {
      ASSERT_TRUE(share.contains(token)) << "seed " << seed;
      EXPECT_NEAR(share.at(token), weight / sum, 1e-3);
    }
    EXPECT_EQ(share.size(), want.size()) << "seed " << seed;
  }
}

TEST(Sample, TiesGoToTheLowerId) {
  const Floats flat = constant(300, 1.5F);
  EXPECT_EQ(sample_row(flat.data(), 300, {.temperature = 0.0F}, 0.9F).token, 0);
  for (const auto& [token, share] : shares(flat, {.top_k = 3}, 90)) {
    EXPECT_LT(token, 3);
    EXPECT_NEAR(share, 1.0 / 3, 0.02);
  }
  for (const auto& [token, share] : shares(flat, {.top_p = 0.5F}, 300)) EXPECT_LT(token, 150);
}

TEST(Sample, NeverDrawsATokenOfNoWeight) {
  Floats x = constant(1000, -std::numeric_limits<float>::infinity());
  x[130] = 1.0F;
  x[700] = 1.0F;
  for (const auto& [token, share] : shares(x, {}, 100)) EXPECT_TRUE(token == 130 || token == 700) << token;
  EXPECT_EQ(sample_row(x.data(), 1000, {}, 0.99999994F).token, 700);
  EXPECT_EQ(sample_row(x.data(), 1000, {}, 0.0F).token, 130);
}

TEST(Sample, LogProbHasTheBitsOfScoring) {
  const int64_t rows = 40, vocab = 777, width = 20;
  const Floats hidden = noise(rows * width, 1), w = noise(vocab * width, 2, 2.0F);
  LinearPanels panels;
  pack_linear(Exec{}, w.data(), vocab, width, ComputeType::kBFloat16Dot, 2, panels);
  for (const float temperature : {1.0F, 0.6F, 0.0F}) {
    std::vector<Sampled> drawn(rows);
    const std::vector<SampleOptions> options(rows, SampleOptions{temperature, 50, 0.9F, 0.01F});
    const Floats u = noise(rows, 3, 0.5F);
    Floats uniform;
    for (const float v : u) uniform.push_back(v + 0.5F);
    // Decoding goes so: few rows at a time, logits first.
    Floats logits = constant(rows * vocab, 0);
    for (int64_t r = 0; r < rows; r += 3) {
      linear(Exec{}, hidden.data() + r * width, width, std::min<int64_t>(3, rows - r), panels,
             logits.data() + r * vocab, vocab);
    }
    const Floats tokens = same_everywhere([&](const Exec& exec) {
      std::vector<Draw> draws;
      for (size_t r = 0; r < drawn.size(); ++r)
        draws.push_back({logits.data() + static_cast<int64_t>(r) * vocab, options[r], uniform[r], {}, &drawn[r], {}});
      draw_rows(exec, vocab, draws);
      Floats both;
      for (const Sampled& s : drawn) both.insert(both.end(), {static_cast<float>(s.token), s.log_prob});
      return both;
    });
    std::vector<int32_t> targets;
    for (const Sampled& s : drawn) targets.push_back(s.token);
    Floats lp = constant(rows, 0);
    log_softmax_gather(Exec{}, {hidden.data(), width, rows, &panels, nullptr, temperature, targets.data()},
                       {.log_prob = lp.data()});
    for (int64_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(same_bits(&lp[r], &drawn[r].log_prob, 1)) << temperature;
      const float alone = row_log_prob(logits.data() + r * vocab, vocab, temperature, targets[r]);
      EXPECT_TRUE(same_bits(&alone, &lp[r], 1)) << temperature;
    }
  }
}

TEST(Sample, DrawsWhatIsAllowedWithTheLogProbOfAllTokens) {
  const int64_t vocab = 100;
  const Floats x = noise(vocab, 1);
  std::vector<uint32_t> allowed(3, 0);  // tokens from 96 on have no bits
  const LogitEdit liked{99, LogitEdit::Kind::kSubtract, -1000.0};
  allowed[1] = 1U << 3;
  allowed[2] = 1U << 31;
  std::map<int32_t, int> drawn;
  for (int i = 0; i < 400; ++i) {
    Sampled sampled;
    const Draw draw{x.data(), {}, static_cast<float>(i) / 400, {&liked, 1}, &sampled, {}, allowed};
    draw_rows(Exec{}, vocab, {&draw, 1});
    ++drawn[sampled.token];
    const float alone = row_log_prob(x.data(), vocab, 1.0F, sampled.token);
    EXPECT_TRUE(same_bits(&alone, &sampled.log_prob, 1));
  }
  ASSERT_EQ(drawn.size(), 2U);
  const double share = 1 / (1 + std::exp(static_cast<double>(x[95]) - x[35]));
  EXPECT_NEAR(drawn.at(35) / 400.0, share, 0.005);
  EXPECT_EQ(drawn.at(35) + drawn.at(95), 400);
}

// The tokens that are likeliest after the edits, which change log-probs here, and each one's own log-prob.
TEST(Sample, ScoresTheLikeliestAfterTheEdits) {
  constexpr int64_t kVocab = 200;
  const Floats x = noise(kVocab, 3);
  const LogitEdit edits[] = {
      {150, LogitEdit::Kind::kSubtract, -9.0}, {151, LogitEdit::Kind::kPenalize, 0.01}, {3, LogitEdit::Kind::kForbid}};
  std::vector<uint32_t> allowed(7, 0);
  for (const int32_t token : {3, 40, 150, 151, 199}) allowed[static_cast<size_t>(token) / 32] |= 1U << (token % 32);
  for (const bool masked : {false, true}) {
    std::vector<std::pair<float, int32_t>> want;  // by falling score
    for (int32_t token = 0; token < kVocab; ++token) {
      const float own = row_log_prob(x.data(), kVocab, 1.0F, token);
      float score = token == 150 ? own + 9 : token == 151 ? own * 0.01F : own;
      const bool has = !masked || (allowed[static_cast<size_t>(token) / 32] >> (token % 32) & 1U) != 0;
      if (token == 3 || !has) score = -std::numeric_limits<float>::infinity();
      want.emplace_back(-score, token);
    }
    std::ranges::stable_sort(want, {}, &std::pair<float, int32_t>::first);
    Sampled sampled;
    std::array<TokenLogProb, 6> top;
    std::array<float, 6> scores;
    Draw draw{x.data(), {.temperature = 0}, 0, edits, &sampled, top, {}, scores};
    if (masked) draw.allowed = allowed;
    draw_rows(Exec{}, kVocab, {&draw, 1});
    for (size_t rank = 0; rank < top.size(); ++rank) {
      EXPECT_EQ(top[rank].token, want[rank].second);
      EXPECT_TRUE(scores[rank] == -want[rank].first || std::abs(scores[rank] + want[rank].first) < 1e-5F) << rank;
      EXPECT_EQ(top[rank].log_prob, row_log_prob(x.data(), kVocab, 1.0F, top[rank].token));
    }
    EXPECT_EQ(std::isfinite(scores[4]), !masked);
  }
}

TEST(Sample, NaNIsAnErrorNotAToken) {
  Floats x = noise(40, 1);
  x[17] = std::nanf("");
  EXPECT_THROW(sample_row(x.data(), 40, {}, 0.5F), base::GuardError);
  EXPECT_THROW(sample_row(x.data(), 40, {.temperature = 0.0F}, 0.5F), base::GuardError);
}

}  // namespace
}  // namespace collimate::tensor
