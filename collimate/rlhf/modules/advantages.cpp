#include "collimate/rlhf/modules/advantages.h"

#include <algorithm>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/host_module.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/advantage/gae.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/modules/options.h"

namespace collimate::rlhf {
namespace {

using flow::Metric;

graph::FunctionSpec spec_of(const AdvantageEntry& entry) {
  graph::FunctionSpec spec{.name = "advantages",
                           .kind = graph::Kind::kHost,
                           .needs = {entry.needs.begin(), entry.needs.end()},
                           .makes = {entry.makes.begin(), entry.makes.end()},
                           .granularity = graph::Granularity::kIteration};
  spec.needs.push_back(batch::kFinish.name);
  return spec;
}

// Mean of a per-token column over the trainable tokens.
double trainable_mean(const Batch& rows, const Key<float>& key) {
  double sum = 0, count = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto values = rows.row(key, r);
    const auto trainable = rows.row(batch::kTrainable, r);
    for (size_t t = 0; t < values.size(); ++t)
      if (trainable[t] != 0) sum += values[t], count += 1;
  }
  return count > 0 ? sum / count : 0;
}

// Mean KL against the reference over the trainable tokens, as the rewards have it.
double mean_kl(const Batch& rows, const std::string& estimator) {
  std::vector<std::vector<float>> kl;
  for (int64_t r = 0; r < rows.rows(); ++r)
    kl.push_back(token_kl(rows.row(batch::kLogProbs, r), rows.row(batch::kReferenceLogProbs, r), estimator));
  const Key<float> column{.name = "kl", .ragged = true};
  Batch estimated = rows;
  estimated.set_ragged(column, kl);
  return trainable_mean(estimated, column);
}

// Rewards less the penalty where a completion was cut at its limit, without EOS or stop token (TRL's
// missing_eos_penalty); it falls on the last step.
Batch penalised(const Batch& rows, double penalty) {
  std::vector<float> rewards = rows.all(batch::kReward);
  std::vector<std::vector<float>> by_step;
  const bool steps = rows.has(batch::kStepRewards.name);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const bool cut = generate::cut_off(static_cast<generate::Finish>(rows.get(batch::kFinish, r)));
    const float less = cut ? static_cast<float>(penalty) : 0.F;
    base::at(rewards, r) -= less;
    if (!steps) continue;
    const auto own = rows.row(batch::kStepRewards, r);
    by_step.emplace_back(own.begin(), own.end());
    if (!own.empty()) by_step.back().back() -= less;
  }
  Batch out = rows;
  out.set(batch::kReward, rewards);
  if (steps) out.set_ragged(batch::kStepRewards, by_step);
  return out;
}

// The step rewards of row `from` on the steps of row `to`, step by step; those beyond its last on that one.
std::vector<float> steps_of_another(const Batch& rows, int64_t from, int64_t to) {
  const auto given = rows.row(batch::kStep, from), own = rows.row(batch::kStep, to);
  const auto rewards = rows.row(batch::kStepRewards, from);
  std::vector<float> out(own.size(), 0.F);
  for (size_t t = 0; t < given.size(); ++t) {
    if (given[t] < 0 || own.empty()) continue;
    const auto place = std::ranges::upper_bound(own, std::min(given[t], own.back()));
    base::at(out, place - own.begin() - 1) += rewards[t];
  }
  return out;
}

// The control experiment: rewards permuted over the rows (Fisher-Yates by iteration), so that they say nothing of them.
Batch with_shuffled_rewards(const Batch& rows, int64_t iteration) {
  constexpr uint32_t kPurpose = 0x5aff1e;
  std::vector<int64_t> from(static_cast<size_t>(rows.rows()));
  std::iota(from.begin(), from.end(), 0);
  for (size_t i = from.size(); i > 1; --i)
    std::swap(from[i - 1], from[base::random_bits(static_cast<uint64_t>(iteration), kPurpose, i, 0) % i]);
  std::vector<float> rewards;
  for (const int64_t r : from) rewards.push_back(rows.get(batch::kReward, r));
  Batch out = rows;
  out.set(batch::kReward, rewards);
  if (!rows.has(batch::kStepRewards.name)) return out;
  std::vector<std::vector<float>> by_step;
  for (const int64_t r : from) by_step.push_back(steps_of_another(rows, r, static_cast<int64_t>(by_step.size())));
  out.set_ragged(batch::kStepRewards, by_step);
  return out;
}

void report(const AdvantageEntry& entry, const AlgorithmOptions& options, const Batch& rows,
            std::vector<Metric>& metrics) {
  if (entry.rows == "groups") {
    const GroupStatistics statistics = group_statistics(rows);
    metrics.push_back({"critic/rewards/group_std", statistics.reward_std});
    metrics.push_back({"critic/rewards/frac_zero_std", statistics.zero_std_fraction});
    return;
  }
  metrics.push_back({"critic/values/mean", trainable_mean(rows, batch::kValues)});
  metrics.push_back({"critic/returns/mean", trainable_mean(rows, batch::kReturns)});
  metrics.push_back({"actor/reward_kl_penalty", mean_kl(rows, options.kl_estimator)});
}

}  // namespace

std::unique_ptr<flow::Module> advantage_module(const AdvantageEntry& entry, const nlohmann::json& parameters) {
  AlgorithmSection options;
  base::apply(parameters, "algorithm", options);
  auto module = std::make_unique<flow::HostModule>();
  module->add(spec_of(entry),
              [entry, options](const Batch& made, const flow::CallInfo& info, std::vector<Metric>& metrics) {
                Batch rows = made;
                if (options.missing_eos_penalty->has_value()) rows = penalised(rows, **options.missing_eos_penalty);
                if (options.shuffle_rewards) rows = with_shuffled_rewards(rows, info.iteration);
                rows = entry.add(rows, options);
                report(entry, options, rows, metrics);
                return rows;
              });
  return module;
}

}  // namespace collimate::rlhf
