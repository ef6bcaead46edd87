#include "collimate/recipe/prepare.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "collimate/base/config.h"
#include "collimate/base/config_text.h"
#include "collimate/base/error.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/unread.h"

namespace collimate::recipe {

namespace {

constexpr double kMostIterations = 1e12;
constexpr double kRounding = 1e-6;  // of epochs times iterations: 0.7 epochs of 10 iterations are 7
constexpr const char* kModels = "models";

// Throws InputError for options of sampling that are wrong only together.
void check_sampling(const Config& config, const Plan& plan) {
  const int64_t completion = config.rollout.completion_tokens;
  if (plan.rows == rlhf::RowKind::kPrompt || config.redraws()) config.rollout.params(completion);
  for (const EvaluationPlan& evaluation : plan.evaluations)
    if (evaluation.measured == MeasureKind::kCompletions && evaluation.asked.key == "evaluation")
      config.evaluation.params(completion_tokens(evaluation.asked, config));
}

template <class T>
bool is_override(const base::Option<T>& option) {
  return option.where().starts_with("--set");
}

int64_t iterations_of(double epochs, const RunData& data, const Plan& plan) {
  const int64_t examples = data.train->epoch_examples();
  const int64_t of_epoch = data.train->epoch_iterations(plan.rows_per_iteration);
  const double rows = epochs * static_cast<double>(examples * data.train->rows_per_example());
  const double exact = of_epoch > 0 ? epochs * static_cast<double>(of_epoch) - kRounding
                                    : rows / static_cast<double>(plan.rows_per_iteration);
  const double iterations = std::max(1.0, std::ceil(exact));
  if (iterations > kMostIterations)
    throw base::InputError(
        base::expectation("run.epochs", fmt::format("at most {} iterations", kMostIterations),
                          fmt::format("{} epochs of {} examples: {}", epochs, examples, iterations)));
  return static_cast<int64_t>(iterations);
}

// Checks the rows of an update in recipes whose rows the data has. Where samples are drawn their number is a multiple
// anyway.
void check_rows(const Plan& plan) {
  const int64_t rows = plan.rows_per_iteration, unit = plan.group_size;
  if (rows <= 0)
    throw base::InputError(base::expectation("train.samples_per_update", "at least 1 with this recipe", "0",
                                             "32, the rows of an optimizer step"));
  if (rows % unit != 0)
    throw base::InputError(base::expectation("train.samples_per_update",
                                             fmt::format("a multiple of {}, as a pair has {} rows", unit, unit),
                                             std::to_string(rows), std::to_string(rows + unit - rows % unit)));
}

using Unread = std::function<bool(const std::string& option)>;

// Returns the options of a section, at `path` ("" for the root), without those that are unread and as by default, and
// without sections of which none is left.
base::ConfigNode without_unread(const base::ConfigNode& section, const base::ConfigNode& standard,
                                const std::string& path, const Unread& unread) {
  static const base::ConfigNode of_a_model = rlhf::ModelOptions().section_value();
  base::ConfigNode kept{.kind = base::ConfigNode::Kind::kMap};
  for (size_t i = 0; i < section.keys.size(); ++i) {
    const std::string &key = section.keys[i], option = base::join_path(path, key);
    const base::ConfigNode& value = section.children[i];
    const base::ConfigNode& usual = path == kModels ? of_a_model : *standard.find(key);
    if (option == kModels || !usual.keys.empty()) {
      base::ConfigNode inner = without_unread(value, usual, option, unread);
      if (!inner.keys.empty()) kept.child(key) = std::move(inner);
    } else if (!unread(option) || base::to_json(value) != base::to_json(usual)) {
      kept.child(key) = value;
    }
  }
  return kept;
}

// Sets run.iterations by run.epochs.
void settle_length(Config& config, const flow::Registry& registry, const RunData& data, Plan& plan) {
  RunOptions& run = config.run;
  if (!run.epochs.get()) return;
  const bool given = !run.iterations.where().empty();
  if (given && is_override(run.iterations) && !is_override(run.epochs)) {
    run.epochs = std::nullopt;
    return;
  }
  const int64_t iterations = iterations_of(*run.epochs.get(), data, plan);
  if (given && run.iterations != iterations && is_override(run.iterations) == is_override(run.epochs))
    throw base::InputError(
        base::expectation(run.iterations.where(),
                          fmt::format("one of run.epochs ({}, which is {}) and run.iterations ({})", *run.epochs.get(),
                                      counted(iterations, "iteration"), run.iterations.get()),
                          "both", "leaving one of them out"));
  run.iterations = iterations;
  plan = complete_plan(config, registry);
}

// Notes the iterations with fewer rows. Throws InputError where a loss divides an update's sum by the share of an
// iteration that each of a fixed number of updates has.
void settle_last_rows(const Config& config, const RunData& data, Plan& plan) {
  const int64_t rows = plan.rows_per_iteration, iterations = data.train->epoch_iterations(rows);
  const int64_t last = iterations > 0 ? data.train->rows_of(iterations - 1, rows) : rows;
  if (last == rows) return;
  plan.epoch_iterations = iterations;
  plan.last_rows = last;
  tell_updates(config, plan);
  const std::string& normalizer = config.algorithm.token_normalizer;
  const int64_t updates = updates_per_iteration(config, plan), fewer = updates_of_rows(config, plan, last);
  if (normalizer != "update" && updates != fewer)
    throw base::InputError(base::expectation(
        "data.last_batch", fmt::format("cycle or drop with algorithm.token_normalizer: {}", normalizer),
        fmt::format("retain, with which the last iteration of an epoch has {} of {} updates", fewer, updates)));
}

}  // namespace

Plan complete_plan(const Config& config, const flow::Registry& registry) {
  Plan plan = make_plan(config, registry);
  // Without an evaluation patience is idle (idle_options) and not refused.
  if (!plan.measures() || std::ranges::any_of(plan.evaluations, &EvaluationPlan::measures_loss))
    plan.read_options.insert("run.patience");
  refuse_unread(config, plan);
  check_sampling(config, plan);
  check_rows(plan);
  return plan;
}

void settle_iterations(Config& config, const flow::Registry& registry, const RunData& data, Plan& plan) {
  settle_length(config, registry, data, plan);
  settle_last_rows(config, data, plan);
}

std::string resolved_text(const Config& config, const Plan& plan) {
  return base::block_yaml(
      without_unread(config.section_value(), Config().section_value(), "",
                     [&](const std::string& option) { return says_nothing(config, plan, option); }));
}

}  // namespace collimate::recipe
