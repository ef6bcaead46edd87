// Goldens of shape updates: TRL's PPO, policy and value model trained together by the sum of their losses.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/batch/trainable.h"
#include "collimate/rlhf/advantage/gae.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/train/scoring.h"
#include "tests/golden/offline.h"
#include "tests/golden/place.h"
#include "tests/golden/ppo_rollout.h"
#include "tests/golden/replay.h"
#include "tests/golden/window.h"

namespace collimate::golden {
namespace {

std::vector<float> flat(const std::vector<std::vector<float>>& rows) {
  std::vector<float> out;
  for (const auto& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

class PpoReplay {
 public:
  PpoReplay(const json& golden, const ModelShelf& shelf)
      : golden_(golden),
        options_(golden.at("hyper")),
        algorithm_(algorithm_of(options_)),
        temperature_(static_cast<float>(options_.number("temperature", 0.7) + 1e-7)),
        policy_(shelf.open(model_name(), "lm", true), learner()),
        value_(shelf.open(model_name(), "value", true, golden.at("heads").at("value")), learner()),
        reference_(shelf.open(model_name(), "lm", false), {}),
        reward_(shelf.open(model_name(), "score", false, golden["heads"].at("reward")), {}) {}

  Outcome run(const std::string& name) {
    zero_gradients();
    for (size_t u = 0; u < golden_["updates"].size(); ++u) {
      const json& update = golden_["updates"][u];
      const Rollout rollout(update, static_cast<int32_t>(options_.number("pad", 0)));
      compare_scoring(u, rollout);
      compare_advantages(u, rollout);
      for (const json& micro : update.at("micro")) has_null_norm_ |= !has_norm(micro);
      for (const json& micro : update.at("micro")) train(u, rollout, micro);
    }
    const json& last = object_or_empty(golden_, "final");
    policy_.compare_parameters(object_or_empty(last, "policy"), "final policy", comparison_);
    value_.compare_parameters(object_or_empty(last, "value"), "final value", comparison_);
    return outcome_of(name, comparison_);
  }

 private:
  std::string model_name() const { return golden_["hyper"].at("model"); }

  train::LearnerOptions learner() const {
    train::LearnerOptions options = learner_options(options_);
    options.max_grad_norm = 0;  // this trainer does not clip
    options.temperature = temperature_;
    return options;
  }

  void compare(const std::string& what, size_t u, const std::vector<float>& ours,
               const std::vector<std::vector<float>>& theirs) {
    comparison_.losses(fmt::format("{}, update {}", what, u + 1), ours, flat(theirs), tolerance_at(u).token);
  }

  // Compares what the four models say of the rollout.
  void compare_scoring(size_t u, const Rollout& rollout) {
    const train::ScoringOptions scoring{temperature_};
    const Batch rows = rollout.policy_rows();
    const Batch reference = train::with_log_probs(reference_, rows, batch::kReferenceLogProbs, scoring);
    const Batch sampled = train::with_log_probs(policy_.model(), rows, batch::kLogProbs, scoring);
    const Batch values = train::with_values(value_.model(), rollout.value_rows(), scoring);
    compare("reference log-probs", u, at_trainable(reference, batch::kReferenceLogProbs),
            Rollout::under(rollout.tokens(), rollout.recorded("ref_logprobs")));
    compare("log-probs", u, at_trainable(sampled, batch::kLogProbs),
            Rollout::under(rollout.tokens(), rollout.recorded("logprobs")));
    compare("values", u, at_trainable(values, batch::kValues),
            Rollout::under(rollout.states(), rollout.recorded("values")));
    compare("scores", u, penalised(rollout, train::with_scores(reward_, rows, scoring).all(batch::kScore)),
            {rollout.recorded("scores").get<std::vector<float>>()});
  }

  // Returns scores less TRL's missing_eos_penalty where the response has no end of sequence.
  std::vector<float> penalised(const Rollout& rollout, std::vector<float> scores) const {
    const auto penalty = static_cast<float>(options_.number("missing_eos_penalty", 0.0));
    const auto& eos = policy_.shape().eos_ids;
    const bool stopped = !options_.find("stop_token").is_null() || !options_.find("stop_token_id").is_null();
    for (size_t r = 0; r < scores.size(); ++r)
      if (!rollout.has_any(r, eos, stopped)) scores[r] -= penalty;
    return scores;
  }

  // KL in the reward and GAE by the recipe's own function, from the recorded numbers: TRL's score is on a row's last
  // state, which is one place beyond its last token where the response ended early. Only tokens have advantages.
  void compare_advantages(size_t u, const Rollout& rollout) {
    const Batch rows = states_of(rollout);
    std::vector<std::vector<float>> rewards, advantages, returns;
    for (int64_t r = 0; r < rows.rows(); ++r)
      rewards.push_back(rlhf::token_rewards(rows, r, algorithm_, kl_coefficient()));
    if (algorithm_.whiten_rewards) rlhf::whiten(rewards, algorithm_, false);
    rlhf::AlgorithmOptions plain = algorithm_;
    plain.whiten_advantages = false;
    const Batch made = rlhf::gae_advantages(rows, plain);
    for (int64_t r = 0; r < rows.rows(); ++r) {
      returns.push_back(batch::at_trainable(made, batch::kReturns, r));
      advantages.push_back(batch::at_trainable(made, batch::kAdvantages, r));
      advantages.back().resize(static_cast<size_t>(count_true(rollout.tokens()[static_cast<size_t>(r)])));
    }
    rlhf::whiten(advantages, algorithm_);
    compare("rewards", u, flat(rewards), Rollout::under(rollout.states(), rollout.recorded("rewards")));
    compare("advantages", u, flat(advantages), Rollout::under(rollout.tokens(), rollout.recorded("advantages")));
    compare("returns", u, flat(returns), Rollout::under(rollout.states(), rollout.recorded("returns")));
  }

  double kl_coefficient() const { return algorithm_.kl_coefficient->value_or(rlhf::kGaeKlCoefficient); }

  // The rollout with a trainable place for each state; beyond the last token policy and reference agree.
  static Batch states_of(const Rollout& rollout) {
    Batch rows = rollout.value_rows();
    const auto values = Rollout::under(rollout.states(), rollout.recorded("values"));
    auto log_probs = Rollout::under(rollout.tokens(), rollout.recorded("logprobs"));
    auto reference = Rollout::under(rollout.tokens(), rollout.recorded("ref_logprobs"));
    for (size_t r = 0; r < values.size(); ++r) {
      log_probs[r].resize(values[r].size(), 0.F);
      reference[r].resize(values[r].size(), 0.F);
    }
    set_at_trainable(rows, batch::kValues, values);
    set_at_trainable(rows, batch::kLogProbs, log_probs);
    set_at_trainable(rows, batch::kReferenceLogProbs, reference);
    rows.set(batch::kReward, rollout.recorded("scores").get<std::vector<float>>());
    return rows;
  }

  void train(size_t u, const Rollout& rollout, const json& micro) {
    const auto rows = micro.at("inds").get<std::vector<int64_t>>();
    const Tolerance tolerance = tolerance_at(micros_ / window());
    const std::string when = fmt::format(", update {}.{}", u + 1, ++micros_);
    const double coefficient = options_.number("vf_coef", 0.1);
    const MicroReport pg = train_policy(rollout, rows);
    const MicroReport vf = train_value(rollout, rows, coefficient);
    comparison_.loss("policy loss" + when, pg.loss, micro.at("pg_loss"), tolerance.loss);
    comparison_.loss("value loss" + when, vf.loss / coefficient, micro.at("vf_loss"), tolerance.loss);
    comparison_.loss("loss" + when, pg.loss + vf.loss, micro.at("loss"), tolerance.loss);
    finish(micro, "gradient norm" + when, tolerance);
    compare_row("new log-probs" + when, pg.log_probs, micro, "new_logprobs_row0", rollout.tokens(), tolerance);
    compare_row("new values" + when, vf.values, micro, "vpred_row0", rollout.states(), tolerance);
  }

  // Micro-batches of a step, of whose losses it takes the mean.
  size_t window() const {
    return static_cast<size_t>(std::max(1.0, options_.number("gradient_accumulation_steps", 1)));
  }

  void zero_gradients() {
    policy_.zero_gradients();
    value_.zero_gradients();
    pending_ = 0;
  }

  // Steps after the last micro-batch of a window: the one with a gradient norm where the others have none, else by
  // count.
  void finish(const json& micro, const std::string& what, Tolerance tolerance) {
    ++pending_;
    if (!has_norm(micro)) return;
    const bool last = has_null_norm_ || pending_ == window();
    const double norm = last ? std::hypot(policy_.step(micro.at("lr")), value_.step(micro["lr"]))
                             : std::hypot(policy_.gradient_norm(), value_.gradient_norm());
    comparison_.relative(what, norm, micro["grad_norm"], tolerance.norm);
    if (last) zero_gradients();
  }

  // The rows' mean loss, with its gradient's share of the window.
  MicroReport accumulate(Trainee& trainee, const Batch& batch, const rlhf::Loss& loss) const {
    const OfflineMicro micro = mean_of_micros(batch, window());
    MicroReport report = trainee.accumulate(micro.rows, loss, micro.counts);
    report.loss *= micro.loss_scale;
    return report;
  }

  MicroReport train_policy(const Rollout& rollout, const std::vector<int64_t>& rows) {
    Batch batch = rollout.policy_rows();
    set_at_trainable(batch, batch::kOldLogProbs, Rollout::under(rollout.tokens(), rollout.recorded("logprobs")));
    set_at_trainable(batch, batch::kAdvantages, Rollout::under(rollout.tokens(), rollout.recorded("advantages")));
    batch = batch.gather(rows);
    return accumulate(policy_, batch, loss_of("ppo", options_));
  }

  MicroReport train_value(const Rollout& rollout, const std::vector<int64_t>& rows, double coefficient) {
    Batch batch = rollout.value_rows();
    set_at_trainable(batch, batch::kValues, Rollout::under(rollout.states(), rollout.recorded("values")));
    set_at_trainable(batch, batch::kReturns, Rollout::under(rollout.states(), rollout.recorded("returns")));
    batch = batch.gather(rows);
    const rlhf::Loss loss = rlhf::weighted_sum({loss_of("value", options_)}, {coefficient});
    return accumulate(value_, batch, loss);
  }

  // The file keeps the numbers of the micro-batch's first row.
  void compare_row(const std::string& what, std::vector<float> ours, const json& micro, const std::string& name,
                   const json& masks, Tolerance tolerance) {
    if (!micro.contains(name) || !micro[name].is_array()) return;
    const std::vector<float> theirs = masked(micro[name], masks[micro["inds"][0].get<size_t>()]);
    ours.resize(std::min(ours.size(), theirs.size()));
    comparison_.losses(what, ours, theirs, tolerance.token);
  }

  const json& golden_;
  Options options_;
  rlhf::AlgorithmOptions algorithm_;
  float temperature_;
  Trainee policy_, value_;
  model::Model reference_, reward_;
  size_t micros_ = 0, pending_ = 0;  // of all; since the last step
  bool has_null_norm_ = false;
  Comparison comparison_;
};

}  // namespace

std::vector<Outcome> replay_ppo(const std::string& name, const json& golden, const ModelShelf& shelf) {
  return {PpoReplay(golden, shelf).run(name)};
}

}  // namespace collimate::golden
