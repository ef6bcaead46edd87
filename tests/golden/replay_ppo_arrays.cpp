// Golden of shape inputs + cases: KL in the reward, GAE, whitening, clipped policy and value loss on fixed arrays.
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "collimate/rlhf/advantage/gae.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/train/learner.h"
#include "tests/golden/replay.h"
#include "tests/golden/rows.h"

namespace collimate::golden {
namespace {

class ArraysReplay {
 public:
  explicit ArraysReplay(const json& golden) : golden_(golden), in_(golden.at("inputs")) {
    std::vector<TokenRow> rows;
    for (const json& mask : in_.at("mask")) {
      const auto tokens = static_cast<size_t>(count_true(mask)) + 1;  // a token of prompt before them
      rows.push_back({std::vector<int32_t>(tokens, 1), std::vector<uint8_t>(tokens, 1)});
      rows.back().trainable[0] = 0;
    }
    rows_ = to_batch(rows);
    rows_.set(batch::kReward, in_.at("score").get<std::vector<float>>());
    set_at_trainable(rows_, batch::kLogProbs, per_row(in_["old_logprobs"]));
    set_at_trainable(rows_, batch::kReferenceLogProbs, per_row(in_["ref_logprobs"]));
    set_at_trainable(rows_, batch::kValues, per_row(in_["values"]));
  }

  Outcome replay(const std::string& name, const json& recorded) {
    comparison_ = {};
    const Options given = options_of(recorded);
    const rlhf::AlgorithmOptions options = algorithm_of(given);
    compare_rewards(options, recorded);
    rlhf::AlgorithmOptions plain = options;
    plain.whiten_advantages = false;
    compare("advantages", rlhf::gae_advantages(rows_, plain), batch::kAdvantages, recorded["advantages_raw"]);
    const Batch rows = rlhf::gae_advantages(rows_, options);
    compare("returns", rows, batch::kReturns, recorded["returns"]);
    compare("whitened advantages", rows, batch::kAdvantages, recorded["advantages_whitened"]);
    compare_losses(rows, recorded, given);
    return outcome_of(name, comparison_);
  }

 private:
  std::vector<std::vector<float>> per_row(const json& values) const {
    std::vector<std::vector<float>> out;
    for (size_t r = 0; r < values.size(); ++r) out.push_back(masked(values[r], in_["mask"][r]));
    return out;
  }
  std::vector<float> flat(const json& values) const {
    std::vector<float> out;
    for (const auto& row : per_row(values)) out.insert(out.end(), row.begin(), row.end());
    return out;
  }

  void compare(const std::string& what, const Batch& rows, const Key<float>& key, const json& recorded) {
    comparison_.losses(what, at_trainable(rows, key), flat(recorded), Tolerance{}.loss);
  }

  // Compares the rewards of tokens, with KL and whitening: with gamma 0 a return is the token's reward.
  void compare_rewards(rlhf::AlgorithmOptions options, const json& recorded) {
    if (!recorded.contains("rewards") || recorded["rewards"].is_null()) return;
    options.gamma = 0.0;
    compare("rewards", rlhf::gae_advantages(rows_, options), batch::kReturns, recorded["rewards"]);
  }

  // Gives what a case has beside its numbers, then what the file has. UnknownKind for an option that nothing here
  // knows.
  Options options_of(const json& recorded) const {
    static const std::set<std::string> kNumbers = {"rewards", "advantages_raw", "returns",     "advantages_whitened",
                                                   "pg_loss", "vf_loss",        "pg_clipfrac", "vf_clipfrac"};
    json over = json::object();
    for (const auto& [name, value] : recorded.items())
      if (!kNumbers.contains(name)) over[name] = value;
    if (const auto names = unread_options(over); !names.empty())
      throw UnknownKind(fmt::format("option {}", fmt::join(names, ", ")), true);
    return {golden_, over};
  }

  void compare_losses(const Batch& rows, const json& recorded, const Options& given) {
    const batch::GlobalCounts counts = train::count_rows(rows);
    rlhf::LossContext policy(rows, {.log_probs = at::tensor(flat(in_["new_logprobs"]))}, counts);
    const rlhf::Loss policy_loss = loss_of("ppo", given);
    comparison_.loss("policy loss", policy_loss.value(policy).item<double>(), recorded.at("pg_loss"), Tolerance{}.loss);
    rlhf::LossContext value(rows, {.values = at::tensor(flat(in_["new_values"]))}, counts);
    const rlhf::Loss value_loss = loss_of("value", given);
    comparison_.loss("value loss", value_loss.value(value).item<double>(), recorded.at("vf_loss"), Tolerance{}.loss);
    fraction("pg_clipfrac", policy, "actor/pg_clipfrac", recorded);
    fraction("vf_clipfrac", value, "critic/vf_clipfrac", recorded);
  }

  void fraction(const std::string& theirs, const rlhf::LossContext& context, const std::string& ours,
                const json& recorded) {
    if (!recorded.contains(theirs) || !recorded[theirs].is_number()) return;
    const auto& [sum, count] = context.metrics().at(ours);
    comparison_.loss(theirs, sum / count, recorded[theirs], Tolerance{}.loss);
  }

  const json& golden_;
  const json& in_;
  Batch rows_;
  Comparison comparison_;
};

}  // namespace

std::vector<Outcome> replay_ppo_arrays(const std::string& name, const json& golden, const ModelShelf&) {
  ArraysReplay replay(golden);
  std::vector<Outcome> outcomes;
  for (size_t c = 0; c < golden.at("cases").size(); ++c) {
    const json& recorded = golden["cases"][c];
    const std::string full = fmt::format("{} gamma={} lam={} kl_coef={}", name, recorded["gamma"].dump(),
                                         recorded["lam"].dump(), recorded["kl_coef"].dump());
    try {
      outcomes.push_back(replay.replay(full, recorded));
    } catch (const UnknownKind& unknown) {
      outcomes.push_back({full, Verdict::kUnknown, unknown.what(), unknown.required});
    }
  }
  return outcomes;
}

}  // namespace collimate::golden
