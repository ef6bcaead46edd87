#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "collimate/rlhf/types/algorithm.h"
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
  explicit Options(const json& hyper) : hyper_(&hyper), over_(json::object()) {}
  Options(const json& hyper, json over) : hyper_(&hyper), over_(std::move(over)) {}

  bool has(const std::string& name) const;
  const json& find(const std::string& name) const;  // null when nowhere
  double number(const std::string& name, double fallback) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  bool flag(const std::string& name, bool fallback) const;

 private:
  const json* hyper_;
  json over_;
};

// The class of TRL's trainers that a file names ("GRPOTrainer"), or "".
std::string trainer_class(const json& golden);
// Names what that trainer is here: "sft", "dpo", "reward", "kto", "orpo", "cpo", "grpo", "ppo", or "" for any other. A
// file of a loss that TRL does not have names its rows ("own rollouts"), and is replayed as the trainer on such rows.
std::string trainer_kind(const json& golden);

train::LearnerOptions learner_options(const Options& options);

// Our loss under TRL's option names for a trainer ("value": of PPO's critic). UnknownKind for a loss type, an option or
// a value that we do not have. `items`: TRL's num_items_in_batch, the divisor of dapo, cispo and vespo; 0: none.
// `window`: micro-batches of the update, which are a part of the generation batch that `items` counts.
rlhf::Loss loss_of(const std::string& trainer, const Options& options, double items = 0, double window = 1);
// The rows and our name of each loss that loss_of makes of them: "pairs ipo".
std::vector<std::string> loss_names(const std::string& trainer, const Options& options);
// Our constants under TRL's names.
rlhf::AlgorithmOptions algorithm_of(const Options& options);
// All losses that the options name must be there.
bool is_required(const std::string& trainer, const Options& options);
// The loss "per variant" and none are none.
bool has_loss_type(const json& hyper);
// Names in `hyper` of which nothing here knows whether they change the numbers.
std::vector<std::string> unread_options(const json& hyper);

}  // namespace collimate::golden
