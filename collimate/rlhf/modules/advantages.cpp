#include "collimate/rlhf/modules/advantages.h"

#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/advantage/gae.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

using flow::Metric;
using flow::Reduce;

graph::FunctionSpec advantage_spec(const std::string& name, std::vector<graph::Column> needs,
                                   std::vector<graph::Column> makes) {
  return {.name = name,
          .kind = graph::Kind::kHost,
          .needs = std::move(needs),
          .makes = std::move(makes),
          .granularity = graph::Granularity::kIteration};
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

// Rewards less the penalty where a completion has no EOS (TRL's missing_eos_penalty).
Batch penalised(const Batch& rows, const nlohmann::json& penalty) {
  if (penalty.is_null()) return rows;
  std::vector<float> rewards = rows.all(batch::kReward);
  for (int64_t r = 0; r < rows.rows(); ++r)
    if (rows.get(batch::kFinish, r) != static_cast<int32_t>(generate::Finish::kEos)) rewards[r] -= penalty.get<float>();
  Batch out = rows;
  out.set(batch::kReward, rewards);
  return out;
}

// The control experiment: rewards permuted over the rows (Fisher-Yates by iteration), so that they say nothing of them.
Batch with_shuffled_rewards(const Batch& rows, int64_t iteration) {
  constexpr uint32_t kPurpose = 0x5aff1e;
  std::vector<float> rewards = rows.all(batch::kReward);
  for (size_t i = rewards.size(); i > 1; --i)
    std::swap(rewards[i - 1], rewards[base::random_bits(static_cast<uint64_t>(iteration), kPurpose, i, 0) % i]);
  Batch out = rows;
  out.set(batch::kReward, rewards);
  return out;
}

}  // namespace

std::unique_ptr<flow::Module> group_advantages_module(const nlohmann::json& parameters) {
  const GroupAdvantageOptions options{parameters.value("scale", "group"), parameters.value("epsilon", 1e-4),
                                      parameters.value("leave_one_out", false)};
  const bool shuffle = parameters.value("shuffle_rewards", false);
  auto module = std::make_unique<flow::HostModule>();
  module->add(advantage_spec("group_advantages", {"uid", "prompt_uid", "trainable", "reward"}, {"advantages"}),
              [options, shuffle](const Batch& made, const flow::CallInfo& info, std::vector<Metric>& metrics) {
                const Batch rows = shuffle ? with_shuffled_rewards(made, info.iteration) : made;
                const GroupStatistics statistics = group_statistics(rows);
                metrics.push_back({"critic/rewards/group_std", statistics.reward_std});
                metrics.push_back({"critic/rewards/frac_zero_std", statistics.zero_std_fraction});
                return group_advantages(rows, options);
              });
  return module;
}

std::unique_ptr<flow::Module> gae_module(const nlohmann::json& parameters) {
  const GaeOptions options{parameters.value("gamma", 1.0), parameters.value("lambda", 0.95),
                           parameters.value("kl_coefficient", 0.05), parameters.value("whiten_rewards", false)};
  const nlohmann::json penalty = parameters.value("missing_eos_penalty", nlohmann::json());
  auto module = std::make_unique<flow::HostModule>();
  module->add(
      advantage_spec("gae", {"uid", "trainable", "finish", "log_probs", "reference_log_probs", "values", "reward"},
                     {"advantages", "returns"}),
      [options, penalty](const Batch& rows, const flow::CallInfo&, std::vector<Metric>& metrics) {
        const Batch out = gae_advantages(penalised(rows, penalty), options);
        metrics.push_back({"critic/values/mean", trainable_mean(out, batch::kValues)});
        metrics.push_back({"critic/returns/mean", trainable_mean(out, batch::kReturns)});
        metrics.push_back({"actor/reward_kl_penalty",
                           trainable_mean(out, batch::kLogProbs) - trainable_mean(out, batch::kReferenceLogProbs)});
        return out;
      });
  return module;
}

}  // namespace collimate::rlhf
