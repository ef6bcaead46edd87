#include <algorithm>
#include <cmath>
#include <vector>

#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/sample.h"
#include "tests/support/tensor/ops/same_everywhere.h"

// Logits that are residues of rounding: a log-prob has its bits only where every sum keeps its order.
namespace collimate::tensor {
namespace {

constexpr int64_t kVocab = 150, kWidth = 96;
constexpr int32_t kTarget = 77;

// log-prob, logsumexp and entropy of row `place` of `rows` adjacent ones, the others of which are NaN.
Floats in_company(const Exec& exec, const LinearPanels& head, const Floats& one, int64_t rows, int64_t place,
                  float temperature) {
  Floats hidden = nans(rows * kWidth);
  std::copy(one.begin(), one.end(), hidden.begin() + place * kWidth);
  const std::vector<int32_t> targets(static_cast<size_t>(rows), kTarget);
  Floats out = constant(3 * rows, 0);
  log_softmax_gather(exec, {hidden.data(), kWidth, rows, &head, nullptr, temperature, targets.data()},
                     {.log_prob = out.data(), .logsumexp = out.data() + rows, .entropy = out.data() + 2 * rows});
  const auto at = static_cast<size_t>(place), count = static_cast<size_t>(rows);
  return {out[at], out[count + at], out[2 * count + at]};
}

// The log-prob that decoding gives the target: logits first, alone.
float decoded(const Exec& exec, const LinearPanels& head, const Floats& one, float temperature) {
  Floats logits = constant(kVocab, 0);
  linear(exec, one.data(), kWidth, 1, head, logits.data(), kVocab);
  return row_log_prob(logits.data(), kVocab, temperature, kTarget);
}

// The last number of rows is more than have logits at once.
TEST(LogProbOrder, CancellingLogitsGiveOneSetOfBitsInAnyCompany) {
  const Floats one = repeating(1, kWidth, 4, 0x1p20F), w = cancelling(kVocab, kWidth, 3);
  for (const ComputeType type : {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot}) {
    for (const float temperature : {1.0F, 0.7F}) {
      Floats alone;
      everywhere({1, 2}, [&](const Exec& exec, const std::string& where) {
        LinearPanels head;
        pack_linear(exec, w.data(), kVocab, kWidth, type, 1, head);
        if (alone.empty()) alone = in_company(exec, head, one, 1, 0, temperature);
        const float drawn = decoded(exec, head, one, temperature);
        EXPECT_TRUE(same_bits(&drawn, alone.data(), 1)) << name_of(type) << ", " << where;
        const int64_t block = log_prob_scratch_bytes(kVocab) / (kVocab * static_cast<int64_t>(sizeof(float)));
        for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{15}, int64_t{17}, int64_t{60}, block + 3})
          for (const int64_t place : {int64_t{0}, rows / 2, std::min(block, rows - 1)})
            EXPECT_TRUE(same_bits(in_company(exec, head, one, rows, place, temperature), alone))
                << name_of(type) << ", " << where << ", " << rows << " rows, at " << place;
      });
      EXPECT_GT(std::fabs(alone[0] + std::log(150.0)), 1e-3) << name_of(type) << ": the case would show nothing";
    }
  }
}

}  // namespace
}  // namespace collimate::tensor
