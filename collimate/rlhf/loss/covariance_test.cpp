#include <gtest/gtest.h>

#include "collimate/tensor/autograd.h"
#include "tests/support/rlhf/loss/two_rows.h"

namespace collimate::rlhf {
namespace {

// Rows of ten tokens, of which the first row's are likely and good and the second row's unlikely and bad: all of them
// have a large covariance.
struct Covarying {
  explicit Covarying(int64_t first_uid) {
    const std::vector<uint8_t> trained(10, 1);
    rows.set(batch::kUid, std::vector<int64_t>{first_uid, first_uid + 1});
    rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(2, trained));
    rows.set_ragged(batch::kAdvantages,
                    std::vector<std::vector<float>>{std::vector<float>(10, 1.F), std::vector<float>(10, -1.F)});
    rows.set_ragged(batch::kLogProbs,
                    std::vector<std::vector<float>>{std::vector<float>(10, -1.F), std::vector<float>(10, -4.F)});
    std::vector<float> flat(10, -1.F);
    flat.insert(flat.end(), 10, -4.F);
    log_probs = tensor::make_leaf(at::tensor(flat));
  }

  // Places of the tokens that have a gradient.
  std::vector<int> trained_by(const Loss& loss) const {
    const Quantities quantities{.log_probs = log_probs};
    batch::Surveys surveys;
    LossContext asked(rows, quantities, {20, 2});
    for (const at::Tensor& list : loss.survey(asked)) surveys.push_back({list, 0});
    LossContext context(rows, quantities, {20, 2}, surveys);
    const at::Tensor gradient = tensor::gradients_of(loss.value(context), {log_probs})[0];
    std::vector<int> places;
    for (int t = 0; t < 20; ++t)
      if (gradient[t].item<float>() != 0.F) places.push_back(t);
    return places;
  }

  Batch rows;
  at::Tensor log_probs;
};

// A share of 20 candidates is left out, by chance that depends on the sample and the place alone.
TEST(ClipCov, LeavesOutAShareOfTheUpdatesTokens) {
  const nlohmann::json bounds = {{"clip_cov_low", 0.5}, {"clip_cov_high", 5}, {"clip_cov_share", 0.25}};
  const Loss loss = loss_with("rollouts", "clip_cov", bounds);
  const std::vector<int> trained = Covarying(3).trained_by(loss);
  EXPECT_EQ(trained.size(), 15U);
  EXPECT_EQ(Covarying(3).trained_by(loss), trained);
  EXPECT_NE(Covarying(77).trained_by(loss), trained);
  EXPECT_EQ(Covarying(3).trained_by(loss_with("rollouts", "clip_cov", {{"clip_cov_low", 2}})).size(), 20U)
      << "no covariance is above 2";
  EXPECT_EQ(Covarying(3).trained_by(loss_with("rollouts", "clip_cov", {{"clip_cov_low", 0.5}})).size(), 19U)
      << "at least one";
}

}  // namespace
}  // namespace collimate::rlhf
