#include "collimate/tensor/ops/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/sample.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

// Ids of x, largest first, of equal ones the smaller id first.
template <class Number>
std::vector<int32_t> ranking(const std::vector<Number>& x) {
  std::vector<int32_t> ids(x.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
  return ids;
}

std::vector<int32_t> ids_of(const RunningTopK& top) {
  std::vector<int32_t> ids;
  for (int64_t rank = 0; rank < top.size(); ++rank) ids.push_back(top.id(rank));
  return ids;
}

// Rows that ascend, descend, and have many equal values, in chunks of every size.
TEST(RunningTopK, IsTheFirstOfASortWhateverTheChunks) {
  for (const int64_t vocab : {1, 5, 20, 64, 65, 300, 1000}) {
    for (int kind = 0; kind < 4; ++kind) {
      Floats x = noise(vocab, 3 + static_cast<uint32_t>(kind), 4.0F);
      if (kind == 1) std::sort(x.begin(), x.end());
      if (kind == 2) std::sort(x.begin(), x.end(), std::greater<float>());
      if (kind == 3) std::transform(x.begin(), x.end(), x.begin(), [](float v) { return std::round(v); });
      const std::vector<int32_t> sorted = ranking(x);
      for (const int64_t most : {1, 3, 20}) {
        const auto want = std::vector(sorted.begin(), sorted.begin() + std::min(most, vocab));
        for (const int64_t chunk : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{130}, vocab}) {
          RunningTopK top(most);
          for (int64_t begin = 0; begin < vocab; begin += chunk) {
            top.add(x.data() + begin, begin, std::min(chunk, vocab - begin));
          }
          EXPECT_EQ(ids_of(top), want) << vocab << " values, kind " << kind << ", " << most << " of chunks of "
                                       << chunk;
          for (int64_t rank = 0; rank < top.size(); ++rank) EXPECT_EQ(top.value(rank), x[top.id(rank)]);
        }
      }
    }
  }
}

TEST(RunningTopK, MinusInfinityAndNaNStayInsideTheRow) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Floats x = {-infinity, 2.0F, -infinity, 3.0F};
  RunningTopK top(4);
  top.add(x.data(), 0, 4);
  EXPECT_EQ(ids_of(top), (std::vector<int32_t>{3, 1, 0, 2}));
  const Floats bad = nans(100);
  RunningTopK none(5);
  none.add(bad.data(), 0, 100);
  for (const int32_t id : ids_of(none)) EXPECT_TRUE(id >= 0 && id < 100) << id;
}

struct Rows {
  int64_t rows, vocab, width;
  Floats hidden, w;
  LinearPanels panels;

  // With `equal` the second half of the vocabulary has the weights of the first: each logit comes twice.
  Rows(int64_t r, int64_t v, int64_t h, ComputeType type, bool equal) : rows(r), vocab(v), width(h) {
    hidden = noise(rows * width, 1), w = noise(vocab * width, 2, 1.5F);
    if (equal) std::copy(w.begin(), w.begin() + vocab / 2 * width, w.begin() + (vocab - vocab / 2) * width);
    pack_linear(Exec{}, w.data(), vocab, width, type, 1, panels);
  }
  std::vector<TokenLogProb> top(const Exec& exec, float temperature, int64_t count, int64_t first, int64_t n) const {
    std::vector<TokenLogProb> out(static_cast<size_t>(n * count));
    log_softmax_gather(exec, {hidden.data() + first * width, width, n, &panels, nullptr, temperature, nullptr},
                       {.top = out.data(), .top_count = count});
    return out;
  }
};

// Ids and log-probs side by side.
Floats as_floats(const std::vector<TokenLogProb>& top) {
  Floats out;
  for (const TokenLogProb& one : top) out.insert(out.end(), {static_cast<float>(one.token), one.log_prob});
  return out;
}

// Log softmax of one row in double.
std::vector<double> log_softmax(const Rows& rows, int64_t r, double temperature) {
  std::vector<double> x;
  for (int64_t v = 0; v < rows.vocab; ++v) {
    double sum = 0;
    for (int64_t i = 0; i < rows.width; ++i) {
      sum += static_cast<double>(rows.hidden[r * rows.width + i]) * rows.w[v * rows.width + i];
    }
    x.push_back(sum / temperature);
  }
  double total = 0;
  for (const double v : x) total += std::exp(v);
  for (double& v : x) v -= std::log(total);
  return x;
}

TEST(TopLogProbs, AreTheFirstOfASortedSoftmaxInDouble) {
  for (const int64_t vocab : {20, 127, 1000}) {
    for (const float temperature : {1.0F, 0.7F, 0.0F}) {
      const Rows rows(9, vocab, 12, ComputeType::kFloat32, false);
      std::vector<TokenLogProb> top;
      same_everywhere([&](const Exec& exec) {
        top = rows.top(exec, temperature, 20, 0, rows.rows);
        return as_floats(top);
      });
      for (int64_t r = 0; r < rows.rows; ++r) {
        const std::vector<double> want = log_softmax(rows, r, temperature == 0.0F ? 1.0 : temperature);
        const std::vector<int32_t> ids = ranking(want);
        for (size_t rank = 0; rank < 20; ++rank) {
          const TokenLogProb& got = top[static_cast<size_t>(r) * 20 + rank];
          EXPECT_NEAR(want[got.token], want[ids[rank]], 1e-5) << "row " << r << ", rank " << rank;
          EXPECT_NEAR(got.log_prob, want[got.token], 1e-5) << "row " << r << ", rank " << rank;
        }
      }
    }
  }
}

TEST(TopLogProbs, OfEqualOnesTheSmallerIdComesFirst) {
  const Rows rows(5, 300, 12, ComputeType::kFloat32, true);
  const auto top = rows.top(Exec{}, 0.7F, 20, 0, rows.rows);
  for (size_t i = 0; i < top.size(); i += 2) {
    EXPECT_EQ(top[i].token + 150, top[i + 1].token);
    EXPECT_EQ(top[i].log_prob, top[i + 1].log_prob);
  }
}

// More rows than fit one block of logits; in bf16 too.
TEST(TopLogProbs, ARowHasItsBitsInAnyBatch) {
  for (const ComputeType type : {ComputeType::kFloat32, ComputeType::kBFloat16Dot}) {
    const Rows rows(1100, 90, 8, type, false);
    const Floats all = same_everywhere([&](const Exec& exec) { return as_floats(rows.top(exec, 0.9F, 7, 0, 1100)); });
    for (const int64_t r : {0, 1, 503, 504, 1097}) {
      const Floats few = as_floats(rows.top(Exec{}, 0.9F, 7, r, 3));
      EXPECT_TRUE(same_bits(few.data(), all.data() + r * 14, 3 * 14)) << r;
    }
  }
}

// The first is argmax, and what log_softmax_gather gives for these ids as targets are these log-probs.
TEST(TopLogProbs, HaveTheBitsOfTheGatheredOnes) {
  const Rows rows(6, 200, 12, ComputeType::kBFloat16Dot, false);
  const auto top = rows.top(Exec{}, 0.6F, 4, 0, rows.rows);
  for (size_t rank = 0; rank < 4; ++rank) {
    std::vector<int32_t> targets, argmax(6);
    for (size_t r = 0; r < 6; ++r) targets.push_back(top[r * 4 + rank].token);
    Floats lp = constant(6, 0);
    log_softmax_gather(Exec{}, {rows.hidden.data(), rows.width, 6, &rows.panels, nullptr, 0.6F, targets.data()},
                       {.log_prob = lp.data(), .argmax = argmax.data()});
    for (size_t r = 0; r < 6; ++r) {
      EXPECT_TRUE(same_bits(&lp[r], &top[r * 4 + rank].log_prob, 1));
      EXPECT_EQ(argmax[r], top[r * 4].token);
    }
  }
}

TEST(TopLogProbs, OfARowOfLogitsAreThoseOfScoring) {
  const Rows rows(8, 333, 20, ComputeType::kBFloat16Dot, false);
  for (const float temperature : {1.0F, 0.6F, 0.0F}) {
    const auto scored = rows.top(Exec{}, temperature, 9, 0, rows.rows);
    Floats logits = constant(rows.vocab, 0);
    for (int64_t r = 0; r < rows.rows; ++r) {
      linear(Exec{}, rows.hidden.data() + r * rows.width, rows.width, 1, rows.panels, logits.data(), rows.vocab);
      std::vector<TokenLogProb> alone(9);
      row_top_log_probs(logits.data(), rows.vocab, temperature, 9, alone.data());
      EXPECT_TRUE(same_bits(as_floats(alone), as_floats({scored.begin() + r * 9, scored.begin() + r * 9 + 9})));
    }
  }
}

}  // namespace
}  // namespace collimate::tensor
