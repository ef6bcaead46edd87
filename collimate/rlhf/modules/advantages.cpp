#include "collimate/rlhf/modules/advantages.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/modules/options.h"
#include "collimate/rlhf/types/loss.h"
#include "collimate/rlhf/types/rounds.h"

namespace collimate::rlhf {
namespace {

// Returns the mean of a per-token column over the trainable tokens.
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

bool is_cut(const Batch& rows, int64_t r) {
  return generate::cut_off(static_cast<generate::Finish>(rows.get(batch::kFinish, r)));
}

// Returns the rows with nothing trainable in completions that were cut off.
Batch without_cut_tokens(const Batch& rows) {
  std::vector<std::vector<uint8_t>> trainable;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto own = rows.row(batch::kTrainable, r);
    trainable.emplace_back(own.begin(), own.end());
    if (is_cut(rows, r)) std::ranges::fill(trainable.back(), uint8_t{0});
  }
  Batch out = rows;
  out.set_ragged(batch::kTrainable, trainable);
  return out;
}

// Returns the rows without those that an earlier iteration trained, with which the others are compared.
Batch without_trained(const Batch& rows) {
  if (!rows.has(kTrainedBefore.name)) return rows;
  std::vector<int64_t> fresh;
  for (int64_t r = 0; r < rows.rows(); ++r)
    if (rows.get(kTrainedBefore, r) == 0) fresh.push_back(r);
  return rows.gather(fresh);
}

Batch with_iteration_tokens(const Batch& rows) {
  int64_t tokens = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) tokens += std::ranges::count(rows.row(batch::kTrainable, r), 1);
  Batch out = rows;
  out.set(kIterationTokens, std::vector<float>(static_cast<size_t>(rows.rows()), static_cast<float>(tokens)));
  return out;
}

}  // namespace

std::vector<std::string> reward_options(const AdvantageEntry& entry) {
  std::vector<std::string> names = {"advantage", "shuffle_rewards", "mask_truncated_completions"};
  if (entry.reads_parts) return names;
  for (const char* name : {"missing_eos_penalty", "overlong_buffer_tokens", "overlong_penalty", "reward_scaling",
                           "reward_clip", "kl_coefficient", "kl_estimator", "kl_target", "kl_target_of", "kl_horizon"})
    names.emplace_back(name);
  return names;
}

bool reads_reference(const AdvantageEntry& entry, const AlgorithmOptions& options) {
  if (std::ranges::find(entry.needs, batch::kReferenceLogProbs.name) != entry.needs.end()) return true;
  return !entry.reads_parts && options.kl_coefficient->value_or(entry.kl_coefficient) > 0;
}

AdvantageModule::AdvantageModule(const AdvantageEntry& entry, const nlohmann::json& parameters) : entry_(entry) {
  AlgorithmSection section;
  base::apply(parameters, "algorithm", section);
  options_ = section;
  now_.kl_coefficient = options_.kl_coefficient->value_or(entry_.kl_coefficient);
  if (options_.kl_target->has_value() && now_.kl_coefficient == 0.0)
    throw base::InputError(base::expectation("algorithm.kl_coefficient", "above 0 where kl_target moves it", "0",
                                             "algorithm.kl_coefficient: 0.05"));
}

std::vector<graph::FunctionSpec> AdvantageModule::functions() const {
  graph::FunctionSpec spec{.name = "advantages",
                           .kind = graph::Kind::kHost,
                           .needs = {entry_.needs.begin(), entry_.needs.end()},
                           .makes = {entry_.makes.begin(), entry_.makes.end()},
                           .granularity = graph::Granularity::kIteration};
  spec.needs.push_back(batch::kFinish.name);
  // Running moments and a moving coefficient are in this process alone, between checkpoints.
  spec.retry_safe = options_.reward_scaling != std::string("running") && !options_.kl_target->has_value();
  const auto also_needs = [&](const std::string& column) {
    if (std::ranges::find(entry_.needs, column) == entry_.needs.end()) spec.needs.push_back(column);
  };
  if (entry_.rows == "groups")  // reported, whatever the entry reads
    for (const auto& name : {batch::kPromptUid.name, batch::kReward.name}) also_needs(name);
  if (options_.mask_truncated_completions) spec.makes.push_back(batch::kTrainable.name);
  if (counts_tokens()) spec.makes.push_back(kIterationTokens.name);
  if (reads_reference(entry_, options_))
    for (const auto* key : {&batch::kLogProbs, &batch::kReferenceLogProbs}) also_needs(key->name);
  return {spec};
}

void AdvantageModule::setup(flow::Context& context) {
  RolloutOptions rollout;
  base::apply(context.config.value("rollout", nlohmann::json::object()), "rollout", rollout);
  completion_tokens_ = rollout.completion_tokens;
}

Batch AdvantageModule::penalised(const Batch& rows) const {
  std::vector<float> penalties(static_cast<size_t>(rows.rows()), 0.F);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    float& penalty = base::at(penalties, r);
    if (options_.missing_eos_penalty->has_value() && is_cut(rows, r))
      penalty += static_cast<float>(**options_.missing_eos_penalty);
    if (options_.overlong_buffer_tokens > 0)
      penalty +=
          static_cast<float>(overlong_penalty(std::ranges::count(rows.row(batch::kTrainable, r), 1), completion_tokens_,
                                              options_.overlong_buffer_tokens, options_.overlong_penalty));
  }
  return penalised_rewards(rows, penalties);
}

Batch AdvantageModule::shaped(const Batch& made, int64_t iteration) {
  Batch rows = made;
  if (options_.reward_scaling == std::string("running")) {
    now_.rewards.add(rows.all(batch::kReward));
    rows = scaled_rewards(rows, now_.rewards.std());
    metrics_.push_back({"critic/rewards/running_std", now_.rewards.std()});
  }
  if (options_.reward_clip->has_value()) rows = clipped_rewards(rows, **options_.reward_clip);
  if (options_.missing_eos_penalty->has_value() || options_.overlong_buffer_tokens > 0) rows = penalised(rows);
  if (options_.shuffle_rewards) rows = with_shuffled_rewards(rows, iteration);
  if (options_.mask_truncated_completions) rows = without_cut_tokens(rows);
  return rows;
}

Batch AdvantageModule::call(const std::string&, const Batch& input, const flow::CallInfo& info) {
  if (info.iteration == iteration_) now_ = before_;
  iteration_ = info.iteration;
  before_ = now_;
  Batch rows = shaped(input, info.iteration);
  const bool kl = reads_reference(entry_, options_);
  if (kl && !entry_.charges_kl) rows = rewards_less_kl(rows, options_, now_.kl_coefficient);
  AlgorithmOptions options = options_;
  options.kl_coefficient = now_.kl_coefficient;
  rows = entry_.add(rows, options);
  report(rows);
  rows = without_trained(rows);
  if (counts_tokens()) rows = with_iteration_tokens(rows);
  if (kl) report_kl(rows);
  if (kl && options_.kl_target->has_value())
    now_.kl_coefficient =
        adapted_kl_coefficient(now_.kl_coefficient, kl_for_target(rows, options_), rows.rows(), options_);
  return rows;
}

void AdvantageModule::report(const Batch& rows) {
  if (entry_.rows == "groups") {
    const GroupStatistics statistics = group_statistics(rows);
    metrics_.push_back({"critic/rewards/group_std", statistics.reward_std});
    if (entry_.compares_samples)  // else training learns from samples with equal rewards too
      metrics_.push_back({"critic/rewards/frac_zero_std", statistics.zero_std_fraction});
    return;
  }
  metrics_.push_back({"critic/values/mean", trainable_mean(rows, batch::kValues)});
  metrics_.push_back({"critic/returns/mean", trainable_mean(rows, batch::kReturns)});
}

// Reports the mean over the trainable tokens of the KL that the rewards are charged with, and the KL's coefficient.
void AdvantageModule::report_kl(const Batch& rows) {
  const TokenValues kl = by_row(rows, [&](int64_t r) { return row_kl(rows, r, options_); });
  const Key<float> column{.name = "kl", .ragged = true};
  Batch estimated = rows;
  estimated.set_ragged(column, spread(rows, kl));
  metrics_.push_back({"actor/reward_kl_penalty", trainable_mean(estimated, column)});
  metrics_.push_back({"actor/reward_kl_penalty_coeff", now_.kl_coefficient});
}

std::vector<flow::Metric> AdvantageModule::metrics() { return std::exchange(metrics_, {}); }

void AdvantageModule::save(base::StateWriter& out) const {
  out.json("shaping", {{"iteration", iteration_}, {"before", before_}, {"now", now_}});
}

void AdvantageModule::load(base::StateReader& in) {
  if (!in.has("shaping")) return;  // the checkpoint is older than this state
  const nlohmann::json state = in.json("shaping");
  iteration_ = state.at("iteration");
  state.at("before").get_to(before_);
  state.at("now").get_to(now_);
}

}  // namespace collimate::rlhf
