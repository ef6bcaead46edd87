#include "collimate/rlhf/modules/options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

AlgorithmSection::AlgorithmSection() : AlgorithmOptions(loss_types(), advantage_names()) {}

model::LoraOptions LoraSection::resolved() const {
  const model::LoraOptions lora{.rank = rank,
                                .alpha = alpha,
                                .rslora = rslora,
                                .targets = targets.get(),
                                .dropout = dropout,
                                .modules_to_save = modules_to_save.get(),
                                .dora = dora};
  const model::LoraOptions unset;
  const bool others = lora.alpha != unset.alpha || lora.rslora || lora.targets != unset.targets || dropout > 0 ||
                      b_rate_ratio != 1.0 || !lora.modules_to_save.empty() || lora.dora;
  if (!lora.on() && others)
    throw base::InputError(base::expectation("lora.rank", "at least 1 beside other keys of lora", "0",
                                             "lora: {rank: 16}, or leaving the others out"));
  return lora;
}

std::vector<int64_t> RolloutOptions::round_limits() const {
  const auto fail = [&](const std::string& expected) {
    throw base::InputError(
        base::expectation("rollout.round_shares", expected, nlohmann::json(round_shares.get()).dump(), "[0.5, 0.5]"));
  };
  constexpr double kRounding = 1e-6;
  std::vector<int64_t> limits;
  double sum = 0;
  for (const double share : round_shares.get()) {
    sum += share;
    const auto limit = std::llround(std::min(sum, 1.0) * static_cast<double>(completion_tokens.get()));
    if (limit <= (limits.empty() ? 0 : limits.back()))
      fail(fmt::format("shares of at least a token each of the {} of rollout.completion_tokens",
                       completion_tokens.get()));
    limits.push_back(limit);
  }
  if (!limits.empty() && std::abs(sum - 1) > kRounding) fail("shares that are 1 together");
  return limits;
}

int64_t micro_batch_tokens(const TrainOptions& train, const std::string& loss_rows) {
  // The results that training keeps of a micro-batch take most of a run's memory. Smaller micro-batches are as fast,
  // unless samples share a prompt, which a micro-batch computes once for all of its samples.
  const bool rows_apart = loss_rows.ends_with("completions") || loss_rows.ends_with("pairs");
  return train.micro_batch_tokens.get().value_or(rows_apart ? 1024 : 2048);
}

model::Recompute recompute_of(const TrainOptions& train, bool by_layout) {
  if (by_layout || train.recompute == std::string("full")) return model::Recompute::kFull;
  return train.recompute == std::string("selective") ? model::Recompute::kSelective : model::Recompute::kNone;
}

bool offloads_optimizer(const TrainOptions& train, bool by_layout) {
  return by_layout || train.offload == std::string("optimizer");
}

std::vector<std::string> train_options(const std::string& head, const std::string& loss_rows) {
  std::vector<std::string> options;
  if (head == "value") options.emplace_back("value_learning_rate");
  if (loss_rows == "rollouts") options.insert(options.end(), {"router_replay", "mismatch_limit", "mismatch_check"});
  return options;
}

}  // namespace collimate::rlhf
