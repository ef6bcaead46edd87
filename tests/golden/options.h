#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "collimate/rlhf/types/loss.h"
#include "collimate/train/learner.h"

namespace collimate::golden {

using nlohmann::json;

// A kind of golden, or an option, that no part of the system has. `required`: the kind is one that must be there.
struct UnknownKind : std::runtime_error {
  UnknownKind(const std::string& what, bool is_required) : std::runtime_error(what), required(is_required) {}
  bool required;
};

// The trainer's options of a golden: a variant's `over`, then the file's `hyper`. A missing one and null are the
// default.
class Options {
 public:
  explicit Options(const json& hyper, json over = json::object()) : hyper_(&hyper), over_(std::move(over)) {}

  const json& find(const std::string& name) const;  // null when nowhere
  double number(const std::string& name, double fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  bool flag(const std::string& name, bool fallback) const;

 private:
  const json* hyper_;
  json over_;
};

// Which of TRL's trainers a file is of: "sft", "dpo", "reward", "kto", "orpo", "cpo", "grpo", "ppo" or "".
std::string trainer_kind(const json& golden);

train::LearnerOptions learner_options(const Options& options);

// Our losses under TRL's option names. UnknownKind for a loss type or option that we do not have.
rlhf::Loss sft_loss_of(const Options& options);
rlhf::Loss dpo_loss_of(const Options& options);
rlhf::Loss reward_loss_of(const Options& options);
// `items`: TRL's num_items_in_batch, the divisor of dapo, cispo and vespo; 0 when the file has none.
rlhf::Loss policy_loss_of(const Options& options, double items);

}  // namespace collimate::golden
