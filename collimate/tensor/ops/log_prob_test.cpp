#include "collimate/tensor/ops/log_prob.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/scratch_need.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

struct Head {
  int64_t rows, vocab, width;
  float temperature;
  Floats hidden, w, bias;
  std::vector<int32_t> targets;
  LinearPanels panels;

  Head(int64_t r, int64_t v, int64_t h, float t) : rows(r), vocab(v), width(h), temperature(t) {
    hidden = noise(rows * width, 1), w = noise(vocab * width, 2, 1.5F), bias = noise(vocab, 3);
    for (int64_t i = 0; i < rows; ++i) targets.push_back(static_cast<int32_t>(i * 37 % vocab));
    pack();
  }
  void pack() { pack_linear(Exec{}, w.data(), vocab, width, ComputeType::kFloat32, 1, panels); }
  LogProbHead args() const { return {hidden.data(), width, rows, &panels, bias.data(), temperature, targets.data()}; }
  std::vector<double> logits(int64_t r) const {
    std::vector<double> x;
    for (int64_t v = 0; v < vocab; ++v) {
      double sum = bias[v];
      for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(hidden[r * width + i]) * w[v * width + i];
      x.push_back(sum / (temperature == 0 ? 1.0 : temperature));
    }
    return x;
  }
  // log-prob, logsumexp and entropy of every row, in double.
  std::vector<double> reference() const {
    std::vector<double> out(static_cast<size_t>(3 * rows));
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<double> x = logits(r);
      double sum = 0, entropy = 0;
      for (const double v : x) sum += std::exp(v);
      for (const double v : x) entropy -= std::exp(v) / sum * (v - std::log(sum));
      out[r] = x[targets[r]] - std::log(sum);
      out[rows + r] = std::log(sum);
      out[2 * rows + r] = entropy;
    }
    return out;
  }
};

Floats outputs(const Exec& exec, const Head& head, std::vector<int32_t>* argmax = nullptr) {
  Floats out = constant(3 * head.rows, 0);
  std::vector<int32_t> ids(static_cast<size_t>(head.rows));
  log_softmax_gather(exec, head.args(), {out.data(), out.data() + head.rows, out.data() + 2 * head.rows, ids.data()});
  if (argmax != nullptr) *argmax = ids;
  return out;
}

TEST(LogProb, AgreesWithDoubleEverywhere) {
  for (const int64_t vocab : {1, 2, 15, 127, 1000}) {
    for (const float temperature : {1.0F, 0.7F, 0.0F}) {
      const Head head(19, vocab, 12, temperature);
      std::vector<int32_t> argmax;
      const Floats out = same_everywhere([&](const Exec& exec) { return outputs(exec, head, &argmax); });
      EXPECT_TRUE(close(out, head.reference(), 2e-6)) << vocab << " tokens";
      for (int64_t r = 0; r < head.rows; ++r) {
        const std::vector<double> x = head.logits(r);
        EXPECT_EQ(argmax[r], std::max_element(x.begin(), x.end()) - x.begin());
      }
    }
  }
}

// More rows than fit one block of logits, so that the cut into blocks is crossed.
TEST(LogProb, ARowHasItsBitsInAnyBatch) {
  const Head many(1100, 90, 8, 0.9F);
  const Floats all = outputs(Exec{}, many);
  for (const int64_t r : {0, 1, 503, 504, 1099}) {
    LogProbHead one = many.args();
    one.hidden += r * many.width;
    one.targets += r;
    one.rows = 1;
    Floats lp = constant(1, 0);
    log_softmax_gather(Exec{}, one, {.log_prob = lp.data()});
    EXPECT_TRUE(same_bits(lp.data(), all.data() + r, 1)) << r;
  }
}

TEST(LogProb, GradientIsTheSlope) {
  Head head(4, 33, 6, 0.8F);
  const Floats dlp = noise(4, 5), dentropy = noise(4, 6);
  const int64_t hidden = head.rows * head.width, weights = head.vocab * head.width;
  const Floats g = same_everywhere([&](const Exec& exec) {
    Floats out = constant(hidden + weights + head.vocab, 0);
    log_softmax_gather_backward(exec, head.args(),
                                {dlp.data(), dentropy.data(), head.w.data(), out.data(), head.width, false,
                                 out.data() + hidden, out.data() + hidden + weights});
    return out;
  });
  const auto loss = [&] {
    const std::vector<double> ref = head.reference();
    double sum = 0;
    for (int64_t r = 0; r < head.rows; ++r) sum += dlp[r] * ref[r] + dentropy[r] * ref[2 * head.rows + r];
    return sum;
  };
  const Floats dh(g.begin(), g.begin() + hidden), dw(g.begin() + hidden, g.begin() + hidden + weights),
      db(g.begin() + hidden + weights, g.end());
  EXPECT_TRUE(slopes_match(head.hidden, dh, 1e-3F, 1e-4, loss));
  EXPECT_TRUE(slopes_match(head.w, dw, 1e-3F, 1e-4, loss));
  EXPECT_TRUE(slopes_match(head.bias, db, 1e-3F, 1e-4, loss));
}

// Logits kept by forward save work and change no bit; 12,000 tokens are several chunks of the vocabulary.
TEST(LogProb, KeptLogitsGiveTheSameGradient) {
  const Head head(400, 12000, 32, 0.8F);
  const Floats dlp = noise(400, 5), dentropy = noise(400, 6);
  const int64_t hidden = head.rows * head.width, weights = head.vocab * head.width;
  const auto gradient = [&](const LogProbForward& forward) {
    Floats out = constant(hidden + weights, 0);
    log_softmax_gather_backward(
        Exec{}, head.args(),
        {dlp.data(), dentropy.data(), head.w.data(), out.data(), head.width, false, out.data() + hidden, nullptr},
        forward);
    return out;
  };
  Floats norms = constant(3 * head.rows, 0), logits = constant(head.rows * head.vocab, 0);
  float *max = norms.data(), *log_sum = max + head.rows, *entropy = log_sum + head.rows;
  log_softmax_gather(Exec{}, head.args(),
                     {.entropy = entropy, .max = max, .log_sum = log_sum, .logits = logits.data()});
  const Floats again = gradient({});
  EXPECT_TRUE(same_bits(gradient({max, log_sum, entropy, nullptr}), again));
  EXPECT_TRUE(same_bits(gradient({max, log_sum, entropy, logits.data()}), again));
}

// Neither scoring nor a backward that computes 160 MB of logits again holds more than a part of them at a time.
TEST(LogProb, NeverHoldsAllLogits) {
  constexpr int kWorker = 74;
  const Head head(1000, 20000, 8, 0.7F);
  const Floats dlp = noise(head.rows, 5);
  Floats lp = constant(head.rows, 0), g = constant((head.rows + head.vocab) * head.width, 0);
  const int64_t all = head.rows * head.vocab * static_cast<int64_t>(sizeof(float));
  std::thread([&] {  // whose working memory begins empty
    const MemoryScope counted(kWorker, "log_prob");
    log_softmax_gather(Exec{}, head.args(), {.log_prob = lp.data()});
    EXPECT_GE(memory_peak(kWorker), log_prob_scratch_bytes(head.vocab));
    EXPECT_LT(memory_peak(kWorker), all / 4);
    log_softmax_gather_backward(
        Exec{}, head.args(),
        {dlp.data(), nullptr, head.w.data(), g.data(), head.width, false, g.data() + head.rows * head.width, nullptr});
    EXPECT_LT(memory_peak(kWorker), all / 2);
  })
      .join();
}

// A small vocabulary has few logits of the rows that scoring takes at once, but the backward takes all rows at once.
TEST(LogProb, SaysWhatTheBackwardHolds) {
  constexpr int kWorker = 75;
  for (const auto& [rows, vocab] : {std::pair{3000, 500}, {11000, 800}, {600, 300}}) {
    const Head head(rows, vocab, 8, 0.7F);
    const Floats dlp = noise(head.rows, 5);
    Floats g = constant((head.rows + head.vocab) * head.width, 0);
    ScratchNeed need(1);
    add_log_prob_backward_scratch({head.rows, head.vocab, head.width}, need);
    std::thread([&] {  // whose working memory begins empty
      const MemoryScope counted(kWorker, "log_prob");
      reset_memory_peak(kWorker);
      log_softmax_gather_backward(Exec{}, head.args(),
                                  {dlp.data(), nullptr, head.w.data(), g.data(), head.width, false,
                                   g.data() + head.rows * head.width, nullptr});
      EXPECT_LE(memory_peak(kWorker), need.bytes()) << head.rows << " rows";
      EXPECT_GT(memory_peak(kWorker), need.bytes() / 2) << head.rows << " rows";
    })
        .join();
  }
}

TEST(LogProb, LargeLogitsAndMinusInfinity) {
  const Floats x = {-std::numeric_limits<float>::infinity(), 1e4F, 1e4F, -1e4F};
  const RowNormalizer norm = row_normalizer(x.data(), 4);
  EXPECT_NEAR(norm.log_prob(x[1]), -std::log(2.0), 1e-6);
  EXPECT_TRUE(std::isinf(norm.log_prob(x[0])));
  const Floats bad = {1.0F, std::nanf(""), 2.0F};
  EXPECT_TRUE(std::isnan(row_normalizer(bad.data(), 3).log_prob(1.0F)));
}

TEST(LogProb, TargetOutsideTheVocabularyIsRejected) {
  Head head(2, 5, 4, 1.0F);
  head.targets[1] = 5;
  EXPECT_THROW(outputs(Exec{}, head), base::InputError);
}

}  // namespace
}  // namespace collimate::tensor
