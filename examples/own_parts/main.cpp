// A program that is `collimate` with three parts of its own, which any config can name (ascending.yaml beside this):
//   a reward     the part of a completion's neighbouring characters that ascend
//   an advantage how a sample ranks in its group, from -1 (worst) to 1 (best), whatever the rewards' distances
//   a loss       REINFORCE (Williams 1992): no ratio, no clipping
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "collimate/collimate.h"

namespace {

using collimate::AdvantageEntry;
using collimate::Batch;
using collimate::LossEntry;

double ascending(const collimate::RewardSample& sample) {
  const std::string& text = sample.completion;
  if (text.size() < 2) return 0;
  double ascents = 0;
  for (size_t i = 1; i < text.size(); ++i) ascents += text[i - 1] <= text[i] ? 1 : 0;
  return ascents / static_cast<double>(text.size() - 1);
}

// Samples of equal reward have equal ranks: how many are below minus how many are above.
Batch add_ranks(const Batch& rows, const collimate::AlgorithmOptions&) {
  const auto groups = collimate::rewards_by_group(rows);
  std::vector<double> ranks;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const std::vector<double>& rewards = groups.at(rows.get(collimate::batch::kPromptUid, row));
    const double own = rows.get(collimate::batch::kReward, row);
    const auto below = std::count_if(rewards.begin(), rewards.end(), [own](double other) { return other < own; });
    const auto above = std::count_if(rewards.begin(), rewards.end(), [own](double other) { return other > own; });
    ranks.push_back(static_cast<double>(below - above) / static_cast<double>(std::max<size_t>(rewards.size() - 1, 1)));
  }
  return collimate::with_row_advantages(rows, ranks);
}

AdvantageEntry rank_entry() { return {.name = "rank", .add = add_ranks}; }

// The sum over a micro-batch's tokens is divided by the tokens of the whole update, so that the loss does not depend on
// how rows are split.
collimate::Loss make_reinforce(const std::string& type, const collimate::LossSetting&) {
  return {.name = type, .columns = {"advantages"}, .value = [](collimate::LossContext& c) {
            c.token_mean("reinforce/log_prob", c.log_probs().detach());
            return (c.per_token(collimate::batch::kAdvantages) * c.log_probs()).sum() / -c.global_tokens();
          }};
}

LossEntry reinforce_losses() { return {"rollouts", {"reinforce"}, {}, make_reinforce}; }

}  // namespace

int main(int argc, char** argv) {
  collimate::register_losses(reinforce_losses());
  collimate::register_advantage(rank_entry());
  collimate::register_reward("ascending", [](const nlohmann::json&) { return collimate::function_reward(ascending); });
  return collimate::run_program(argc, argv);
}
