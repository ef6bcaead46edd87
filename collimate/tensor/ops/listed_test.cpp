#include "collimate/tensor/ops/listed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "collimate/tensor/ops/log_prob.h"
#include "tests/support/base/error_of.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

// A head and lists of its tokens; targets are of the lists in every second row.
struct ListedHead {
  int64_t rows, vocab, width, count;
  float temperature, softcap;
  Floats hidden, w;
  std::vector<int32_t> targets, ids;
  LinearPanels panels;

  ListedHead(int64_t r, int64_t v, int64_t k, float t = 0.8F, float cap = 0)
      : rows(r), vocab(v), width(6), count(k), temperature(t), softcap(cap) {
    hidden = noise(rows * width, 1), w = noise(vocab * width, 2, 1.5F);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < count; ++j) ids.push_back(static_cast<int32_t>(j * vocab / count));
      targets.push_back(i % 2 == 0 ? ids.back() : static_cast<int32_t>((i + 1) % vocab));
    }
    pack_linear(Exec{}, w.data(), vocab, width, ComputeType::kFloat32, 1, panels);
  }
  LogProbHead args() const {
    LogProbHead head{hidden.data(), width, rows, &panels, nullptr, temperature, targets.data()};
    head.softcap = softcap;
    return head;
  }
  std::vector<double> log_probs(int64_t r) const {
    std::vector<double> x;
    double sum = 0;
    for (int64_t v = 0; v < vocab; ++v) {
      double dot = 0;
      for (int64_t i = 0; i < width; ++i) dot += static_cast<double>(hidden[r * width + i]) * w[v * width + i];
      if (softcap > 0) dot = softcap * std::tanh(dot / softcap);
      x.push_back(dot / temperature);
      sum += std::exp(x.back());
    }
    for (double& one : x) one -= std::log(sum);
    return x;
  }
  // Log-probs of the lists, and behind them the rests', in double.
  std::vector<double> reference() const {
    std::vector<double> listed, rests;
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<double> all = log_probs(r);
      double rest = 0;
      for (int64_t v = 0; v < vocab; ++v) rest += std::exp(all[v]);
      for (int64_t k = 0; k < count; ++k) listed.push_back(all[ids[r * count + k]]);
      double left = 0;
      for (int64_t v = 0; v < vocab; ++v)
        if (!std::binary_search(ids.begin() + r * count, ids.begin() + (r + 1) * count, static_cast<int32_t>(v)))
          left += std::exp(all[v]);
      rests.push_back(left == 0 ? kLeastRest : std::log(left));
    }
    listed.insert(listed.end(), rests.begin(), rests.end());
    return listed;
  }
};

Floats listed_of(const Exec& exec, const ListedHead& head, int32_t* likely = nullptr) {
  Floats out = constant(head.rows * (head.count + 1), 0);
  LogProbOutput asked;
  asked.listed = {head.count, likely == nullptr ? head.ids.data() : nullptr};
  asked.likely = likely;
  asked.listed_log_prob = out.data();
  asked.rest = out.data() + head.rows * head.count;
  log_softmax_gather(exec, head.args(), asked);
  return out;
}

TEST(Listed, AgreesWithDoubleEverywhere) {
  for (const int64_t vocab : {2, 15, 130, 1000})
    for (const int64_t count : {int64_t{1}, std::min<int64_t>(vocab, 9), vocab}) {
      const ListedHead head(19, vocab, count);
      const Floats out = same_everywhere([&](const Exec& exec) { return listed_of(exec, head); });
      EXPECT_TRUE(close(out, head.reference(), 3e-6)) << count << " of " << vocab << " tokens";
    }
}

// One less the sum of the listed ones would be a few roundings of 1.
TEST(Listed, ASmallRestIsAccurate) {
  ListedHead head(5, 40, 1, 0.02F);
  for (int64_t r = 0; r < head.rows; ++r) {
    const std::vector<double> all = head.log_probs(r);
    head.ids[r] = static_cast<int32_t>(std::ranges::max_element(all) - all.begin());
  }
  const Floats out = listed_of(Exec{}, head);
  const std::vector<double> expected = head.reference();
  EXPECT_LT(*std::min_element(expected.begin() + 5, expected.end()), -16);
  EXPECT_TRUE(close(out, expected, 1e-4));
}

TEST(Listed, FindsTheMostLikely) {
  for (const int64_t count : {1, 3, 64, 700}) {
    const ListedHead head(7, 700, count);
    std::vector<int32_t> likely(static_cast<size_t>(head.rows * count));
    listed_of(Exec{}, head, likely.data());
    for (int64_t r = 0; r < head.rows; ++r) {
      const std::vector<double> all = head.log_probs(r);
      std::vector<int32_t> order(static_cast<size_t>(head.vocab));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::sort(order, [&](int32_t a, int32_t b) { return all[a] > all[b]; });
      std::sort(order.begin(), order.begin() + count);
      for (int64_t k = 0; k < count; ++k) EXPECT_EQ(likely[r * count + k], order[k]);
    }
  }
}

TEST(Listed, EqualLogitsAreTakenInOrderAndNaNLast) {
  Floats x = constant(300, 1.0F);
  x[250] = 2, x[0] = std::numeric_limits<float>::quiet_NaN(), x[200] = 2, x[3] = 0;
  std::vector<int32_t> ids(5);
  largest_ids(x.data(), 300, 1000, 5, ids.data());
  EXPECT_EQ(ids, (std::vector<int32_t>{1001, 1002, 1004, 1200, 1250}));
  const Floats none = nans(300);
  largest_ids(none.data(), 300, 0, 5, ids.data());
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 2, 3, 4}));
}

TEST(Listed, GradientIsTheSlope) {
  for (const auto& [vocab, count, cap] : {std::tuple{33, 5, 0.0F}, {33, 33, 0.0F}, {33, 7, 4.0F}}) {
    ListedHead head(4, vocab, count, 0.8F, cap);
    const Floats dlp = noise(4, 5), dlisted = noise(4 * count, 6), drest = noise(4, 7);
    const int64_t hidden = head.rows * head.width;
    const Floats forward = listed_of(Exec{}, head);
    const Floats g = same_everywhere([&](const Exec& exec) {
      Floats out = constant(hidden + head.vocab * head.width, 0);
      LogProbGrad grad{dlp.data(), nullptr, head.w.data(), out.data(), head.width, false, out.data() + hidden};
      grad.listed = {{head.count, head.ids.data()}, dlisted.data(), drest.data(), forward.data() + 4 * count};
      log_softmax_gather_backward(exec, head.args(), grad);
      return out;
    });
    const auto loss = [&] {
      const std::vector<double> listed = head.reference();
      double sum = 0;
      for (int64_t r = 0; r < head.rows; ++r) sum += dlp[r] * head.log_probs(r)[head.targets[r]];
      for (int64_t i = 0; i < 4 * count; ++i) sum += dlisted[i] * listed[i];
      for (int64_t r = 0; r < 4; ++r) sum += drest[r] * listed[4 * count + r];
      return sum;
    };
    const Floats dh(g.begin(), g.begin() + hidden), dw(g.begin() + hidden, g.end());
    EXPECT_TRUE(slopes_match(head.hidden, dh, 1e-3F, 2e-4, loss)) << count << " of " << vocab;
    EXPECT_TRUE(slopes_match(head.w, dw, 1e-3F, 2e-4, loss)) << count << " of " << vocab;
  }
}

TEST(Listed, IdsOutOfOrderOrRangeAreNamed) {
  ListedHead head(2, 20, 3);
  head.ids[4] = head.ids[3];
  EXPECT_NE(base::message_of([&] { listed_of(Exec{}, head); }).find("ascending ids in [0, 20)"), std::string::npos);
  head.ids[4] = 20;
  EXPECT_NE(base::message_of([&] { listed_of(Exec{}, head); }).find("20"), std::string::npos);
}

}  // namespace
}  // namespace collimate::tensor
