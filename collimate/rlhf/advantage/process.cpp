#include <cmath>
#include <map>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

// Computes the discounted return of each step of row r.
std::vector<double> step_returns(const Batch& rows, int64_t r, double gamma) {
  const auto step = rows.row(batch::kStep, r);
  const auto rewards = rows.row(batch::kStepRewards, r);
  std::vector<double> returns(step.empty() ? 0 : static_cast<size_t>(step.back() + 1), 0.0);
  for (size_t t = 0; t < step.size(); ++t)
    if (step[t] >= 0) base::at(returns, step[t]) += rewards[t];
  for (size_t j = returns.size(); j-- > 1;) returns[j - 1] += gamma * returns[j];
  for (double value : returns)
    if (!std::isfinite(value))
      throw base::InputError(base::expectation("advantages", "finite rewards of steps",
                                               fmt::format("{} in row {}", value, r), "reward.on_error: drop"));
  return returns;
}

Batch add_process(const Batch& rows, const AlgorithmOptions& options) {
  std::vector<std::vector<double>> returns;
  std::map<std::pair<int64_t, size_t>, std::vector<double>> by_step;  // prompt, step
  for (int64_t r = 0; r < rows.rows(); ++r) {
    returns.push_back(step_returns(rows, r, options.gamma));
    for (size_t j = 0; j < returns.back().size(); ++j)
      by_step[{rows.get(batch::kPromptUid, r), j}].push_back(returns.back()[j]);
  }
  std::vector<double> all;
  std::map<std::pair<int64_t, size_t>, Moments> statistics;
  for (const auto& [place, values] : by_step) {
    statistics[place] = moments(values);
    all.insert(all.end(), values.begin(), values.end());
  }
  const Moments batch = moments(all);
  std::vector<std::vector<float>> advantages;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const std::vector<double>& own = base::at(returns, r);
    std::vector<float> of_step;
    for (size_t j = 0; j < own.size(); ++j) {
      const Moments& others = statistics.at({rows.get(batch::kPromptUid, r), j});
      of_step.push_back(static_cast<float>((own[j] - others.mean) / advantage_divisor(options, others, batch)));
    }
    const auto trainable = rows.row(batch::kTrainable, r);
    const auto step = rows.row(batch::kStep, r);
    std::vector<float>& row = advantages.emplace_back(trainable.size(), 0.F);
    for (size_t t = 0; t < row.size(); ++t)
      if (trainable[t] != 0 && step[t] >= 0) row[t] = base::at(of_step, step[t]);
  }
  Batch out = rows;
  out.set_ragged(batch::kAdvantages, advantages);
  return out;
}

}  // namespace

// "process" is GRPO with process supervision (Shao et al. 2024, section 4.1.3). A token's return is the reward of its
// step and the later ones, where later ones are discounted by gamma once per step. The return is compared with those
// that the prompt's samples have from the step of the same number, as "group" compares rewards; the two agree if every
// completion is one step. A step that no other sample reached has advantage 0. (The paper takes one mean and std over
// all steps of the group, and no discount.) Throws InputError, naming the row, for a return that is not finite.
AdvantageEntry process_entry() {
  return {.name = "process",
          .needs = {"uid", "prompt_uid", "trainable", "reward", "step", "step_rewards"},
          .options = {"scale_rewards", "advantage_epsilon", "gamma"},
          .add = add_process,
          .about =
              "GRPO for rewards of single steps: what a step and the later ones earned, compared with the same step of "
              "the prompt's other samples."};
}

}  // namespace collimate::rlhf
