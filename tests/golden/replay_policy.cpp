// Goldens of GRPO: rollouts replayed update by update (steps[].batch), and variants of the loss on fixed arrays.
#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/train/scoring.h"
#include "tests/golden/place.h"
#include "tests/golden/replay.h"
#include "tests/golden/rows.h"
#include "tests/golden/variant.h"
#include "tests/golden/window.h"

namespace collimate::golden {
namespace {

// Numbers of [R, T] completion arrays without padding.
std::vector<std::vector<float>> completion_numbers(const json& values, const json& batch) {
  std::vector<std::vector<float>> out;
  for (size_t r = 0; r < values.size(); ++r) out.push_back(masked(values[r], policy_mask(batch, r)));
  return out;
}

void set_advantages(Batch& rows, const json& batch) {
  std::vector<std::vector<float>> tokens;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const json& advantage = base::at(batch.at("advantages"), r);
    const json mask = policy_mask(batch, static_cast<size_t>(r));
    if (advantage.is_array())
      tokens.push_back(masked(advantage, mask));
    else
      tokens.emplace_back(count_true(mask), advantage.get<float>());
  }
  set_at_trainable(rows, batch::kAdvantages, tokens);
}

// Losses that compare rewards read those of samples as the numbers of a row that stand in the place of advantages.
void set_rewards(Batch& rows, const json& batch) {
  std::vector<float> rewards;
  for (const json& advantage : batch.at("advantages"))
    rewards.push_back(advantage.is_array() ? 0.F : advantage.get<float>());
  rows.set(batch::kReward, rewards);
  rows.set(batch::kPromptUid, std::vector<int64_t>(rewards.size(), 7));
}

bool has_numbers(const json& batch, const std::string& name) { return batch.contains(name) && batch[name].is_array(); }

// The rows are counted against these: TRL divides a micro-batch's loss by the micro-batches of its update.
batch::GlobalCounts window_counts(const Batch& rows, double window) { return train::count_rows(rows) * window; }

double declared_window(const Options& options) {
  return std::max(1.0, options.number("gradient_accumulation_steps", 1));
}

// The micro-batches that a step holds: those that it lists, or itself.
std::vector<const json*> parts_of(const json& recorded) {
  if (!recorded.contains("micro") || recorded["micro"].is_null()) return {&recorded};
  std::vector<const json*> parts;
  for (const json& micro : recorded["micro"]) parts.push_back(&micro);
  return parts;
}

// Where the file has no old log-probs they are those of the weights that this update differentiates.
Batch policy_rows(const json& batch, Trainee& trainee, model::Model* reference, const Options& options) {
  const train::ScoringOptions scoring{static_cast<float>(options.number("temperature", 1.0))};
  if (has_numbers(batch, "importance_sampling_ratio"))
    throw UnknownKind("importance_sampling_ratio of another engine", is_required("grpo", options));
  Batch rows = to_batch(prompt_completion_rows(batch));
  set_advantages(rows, batch);
  const auto items = static_cast<float>(std::max(1.0, number_or(batch, "num_items_in_batch", 0.0)));
  set_rewards(rows, batch);
  rows.set(rlhf::kIterationTokens, std::vector<float>(static_cast<size_t>(rows.rows()), items));
  if (has_numbers(batch, "old_per_token_logps"))
    set_at_trainable(rows, batch::kOldLogProbs, completion_numbers(batch["old_per_token_logps"], batch));
  else
    rows = train::with_log_probs(trainee.model(), rows, batch::kOldLogProbs, scoring);
  if (has_numbers(batch, "sampling_per_token_logps"))
    set_at_trainable(rows, batch::kLogProbs, completion_numbers(batch["sampling_per_token_logps"], batch));
  if (has_numbers(batch, "ref_per_token_logps"))
    set_at_trainable(rows, batch::kReferenceLogProbs, completion_numbers(batch["ref_per_token_logps"], batch));
  else if (reference != nullptr)
    rows = train::with_log_probs(*reference, rows, batch::kReferenceLogProbs, scoring);
  return rows;
}

// TRL's name of a metric -> ours.
std::map<std::string, std::string> policy_metric_names(const Options& options) {
  std::map<std::string, std::string> names = {{"kl", "actor/kl_loss"}, {"entropy", "actor/entropy"}};
  // With ratios of sequences TRL counts clipped rows, we count their tokens.
  if (options.text("importance_sampling_level", "token") == "token") {
    names["clip_ratio/region_mean"] = "actor/pg_clipfrac";
    names["clip_ratio/low_mean"] = "actor/pg_clipfrac_lower";
    names["cispo_clip_ratio"] = "actor/pg_clipfrac";
  }
  return names;
}

class RolloutReplay {
 public:
  RolloutReplay(const json& golden, const ModelShelf& shelf)
      : golden_(golden),
        options_(golden.at("hyper")),
        names_(policy_metric_names(options_)),
        trainee_(shelf.open(golden["hyper"].at("model"), "lm", true), learner_options(options_)) {
    if (options_.number("beta", 0.0) != 0.0) reference_ = std::make_unique<Reference>(golden, options_, shelf);
  }

  Outcome run(const std::string& name) {
    const json& steps = golden_["steps"];
    std::vector<size_t> micros;
    for (const json& recorded : steps) micros.push_back(parts_of(recorded).size());
    const std::vector<size_t> windows = window_lengths(steps, micros, static_cast<size_t>(declared_window(options_)));
    trainee_.zero_gradients();
    for (size_t s = 0; s < steps.size(); ++s) step(s, steps[s], static_cast<double>(windows[s]));
    trainee_.compare_parameters(object_or_empty(object_or_empty(golden_, "final"), "params"), "final", comparison_);
    return outcome_of(name, comparison_);
  }

 private:
  void step(size_t s, const json& recorded, double window) {
    for (const json* part : parts_of(recorded)) {
      const MicroReport report = accumulate(s, *part, window);
      log_.add(report.metrics);
      if (part == &recorded) continue;
      MetricLog own(report.metrics);  // no log: what the micro-batch itself reported
      own.compare(names_, object_or_empty(*part, "metrics"), s, comparison_);
    }
    log_.compare(names_, object_or_empty(recorded, "metrics"), s, comparison_);
    if (!has_norm(recorded)) return;  // accumulation goes on
    log_.clear();
    const double norm = trainee_.step(recorded.at("lr"));
    comparison_.relative(fmt::format("gradient norm, step {}", s + 1), norm, recorded["grad_norm"],
                         tolerance_at(s).norm);
    trainee_.zero_gradients();
    if (reference_) reference_->follow(++updates_, trainee_);
  }

  // One micro-batch of an update of `window`.
  MicroReport accumulate(size_t s, const json& recorded, double window) {
    const json& batch = recorded.at("batch");
    const rlhf::Loss loss = loss_of("grpo", options_, number_or(batch, "num_items_in_batch", 0.0), window);
    const Batch rows = policy_rows(batch, trainee_, reference_ ? &reference_->model() : nullptr, options_);
    MicroReport report = trainee_.accumulate(rows, loss, window_counts(rows, window));
    comparison_.loss(fmt::format("loss, step {}", s + 1), report.loss, recorded.at("loss"), tolerance_at(s).loss);
    return report;
  }

  const json& golden_;
  Options options_;
  std::map<std::string, std::string> names_;
  Trainee trainee_;
  std::unique_ptr<Reference> reference_;
  MetricLog log_;
  size_t updates_ = 0;
  Comparison comparison_;
};

Outcome replay_variant(const std::string& name, const json& golden, const json& variant, const Options& options,
                       const ModelShelf& shelf) {
  const json& inputs = golden["inputs"];
  const double window = declared_window(options);
  const rlhf::Loss loss = loss_of("grpo", options, number_or(inputs, "num_items_in_batch", 0.0), window);
  Trainee trainee(shelf.open(golden["hyper"].at("model"), "lm", true), learner_options(options));
  const Batch rows = policy_rows(inputs, trainee, nullptr, options);
  Comparison comparison;
  trainee.zero_gradients();
  const MicroReport report = trainee.accumulate(rows, loss, window_counts(rows, window));
  comparison.loss("loss", report.loss, variant.at("loss"), Tolerance{}.loss);
  comparison.relative("gradient norm", trainee.gradient_norm(), variant.at("grad_norm"), Tolerance{}.norm);
  trainee.compare_gradients(object_or_empty(variant, "grad_l2"), comparison);
  MetricLog(report.metrics).compare(policy_metric_names(options), object_or_empty(variant, "metrics"), 0, comparison);
  if (options.number("temperature", 1.0) == 1.0 && has_numbers(golden, "model_logprobs_temperature1")) {
    std::vector<float> theirs;
    for (const auto& row : completion_numbers(golden["model_logprobs_temperature1"], inputs))
      theirs.insert(theirs.end(), row.begin(), row.end());
    comparison.losses("log-prob", report.log_probs, theirs, Tolerance{}.token);
  }
  return outcome_of(name, comparison);
}

}  // namespace

std::vector<Outcome> replay_rollouts(const std::string& name, const json& golden, const ModelShelf& shelf) {
  return {RolloutReplay(golden, shelf).run(name)};
}

std::vector<Outcome> replay_policy_variants(const std::string& name, const json& golden, const ModelShelf& shelf) {
  std::vector<Outcome> outcomes;
  for (const auto& [key, variant] : golden.at("variants").items()) {
    const std::string full = name + " " + key;
    try {
      const Options options = variant_options("grpo", key, variant, golden["hyper"]);
      outcomes.push_back(replay_variant(full, golden, variant, options, shelf));
    } catch (const UnknownKind& unknown) {
      outcomes.push_back({full, Verdict::kUnknown, unknown.what(), unknown.required});
    }
  }
  return outcomes;
}

}  // namespace collimate::golden
