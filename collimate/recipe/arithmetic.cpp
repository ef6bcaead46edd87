#include "collimate/recipe/arithmetic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace collimate::recipe {
namespace {

// Returns the most micro-batches that `rows` rows make, each of at most `longest` tokens and packed in whole units of
// `unit` rows (see train/micro_batch.h). `budget`: the most tokens of a micro-batch.
int64_t most_micro_batches(int64_t rows, int64_t longest, int64_t budget, int64_t unit) {
  const int64_t units = std::max<int64_t>(1, budget / std::max<int64_t>(1, longest * unit));
  return (rows + units * unit - 1) / (units * unit);
}

std::string rate_line(const BatchArithmetic& n, const rlhf::TrainOptions& train) {
  const std::string& schedule = train.lr_schedule;
  const double peak = train.learning_rate->value();
  std::string line = "learning rate: ";
  if (train.warmup_updates > 0)
    line += fmt::format("0 to {} over {}, then ", peak, counted(train.warmup_updates, "update"));
  else
    line += fmt::format("{} ", peak);
  if (schedule == "constant") return line + "constant";
  const double floor = schedule == "cosine_with_min" ? train.lr_minimum_ratio * peak : 0.0;
  return line + fmt::format("{} to {} at update {}", schedule, floor, n.total_updates);
}

std::string rounds_line(const Config& config) {
  return fmt::format(
      "rounds: a sample has at most {} tokens after its first, second, … iteration; an iteration begins as many "
      "prompts as the one before has finished, and trains samples as they finish: the numbers below are the most",
      fmt::join(config.rollout.round_limits(), ", "));
}

// Says that the run is too short to change much, and which length would be enough.
std::string few_updates_line(const BatchArithmetic& n, const Config& config) {
  const std::optional<double> epochs = config.run.epochs.get();
  const auto iterations = static_cast<double>(config.run.iterations.get());
  const double enough = std::ceil(iterations * kFewUpdates / static_cast<double>(n.total_updates));
  const int64_t read = n.rows / n.group_size;  // examples of an iteration
  const double passes = n.epoch_iterations > 0 ? 1 / static_cast<double>(n.epoch_iterations)
                                               : static_cast<double>(read) / static_cast<double>(n.examples);
  const int64_t rising = config.train.warmup_updates;  // as many as all updates are refused elsewhere
  const std::string warmup =
      rising > 0 && rising < n.total_updates ? fmt::format(", {} of them with a rate that still rises", rising) : "";
  return fmt::format(
      "warning: the run has {} in all{}; so few hardly change a model at a usual learning rate: try run.{}: {} or more",
      counted(n.total_updates, "update"), warmup, epochs ? "epochs" : "iterations",
      epochs ? std::ceil(enough * passes) : enough);
}

// Sets how often the run reads the data, and what stands at the end of an epoch.
void count_epochs(const Config& config, BatchArithmetic& n) {
  const int64_t read = n.rows / n.group_size, iterations = config.run.iterations;
  const rlhf::LastBatch last = config.data.last_batch_choice();
  n.epochs = static_cast<double>(iterations * read) / static_cast<double>(n.examples);
  if (last == rlhf::LastBatch::kCycle) return;
  n.examples_left = n.examples % read;
  n.epoch_iterations = n.examples / read + (last == rlhf::LastBatch::kRetain && n.examples_left > 0 ? 1 : 0);
  n.epochs = static_cast<double>(iterations) / static_cast<double>(n.epoch_iterations);
}

// Returns how many updates all iterations have, of which the last ones of epochs may have fewer.
std::string updates_of_run(const BatchArithmetic& n, int64_t iterations) {
  if (n.total_updates == iterations * n.updates)
    return fmt::format("× {} = {} in all", counted(iterations, "iteration"), n.total_updates);
  return fmt::format("{} in {}, as the last one of an epoch has fewer", n.total_updates,
                     counted(iterations, "iteration"));
}

// Returns the line of the run's length.
std::string length_line(const BatchArithmetic& n, const Config& config) {
  const int64_t iterations = config.run.iterations, read = n.rows / n.group_size;
  const std::string epochs = fmt::format("{:.3g} epoch{}", n.epochs, n.epochs == 1 ? "" : "s");
  if (n.epoch_iterations == 0)
    return fmt::format("run: {} × {} = {}, {} of {}", counted(iterations, "iteration"), counted(read, "example"),
                       iterations * read, epochs, n.examples);
  const std::string line =
      fmt::format("run: {} of {}, {} of {} in {}", counted(iterations, "iteration"), counted(read, "example"), epochs,
                  n.examples, counted(n.epoch_iterations, "iteration"));
  if (n.examples_left == 0) return line;
  if (config.data.last_batch_choice() == rlhf::LastBatch::kRetain)
    return fmt::format("{}, of which the last has {} (data.last_batch: retain)", line, n.examples_left);
  return fmt::format("{}, and {} of each epoch {} left out (data.last_batch: drop)", line, n.examples_left,
                     n.examples_left == 1 ? "is" : "are");
}

// Returns how many examples the run reads beyond run.epochs, as it has whole iterations.
int64_t beyond_epochs(const Config& config, const BatchArithmetic& n) {
  if (!config.run.epochs.get() || n.epoch_iterations > 0) return 0;
  const double asked = *config.run.epochs.get() * static_cast<double>(n.examples);
  return config.run.iterations * n.rows / n.group_size - static_cast<int64_t>(std::ceil(asked));
}

}  // namespace

std::string counted(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

int64_t micro_batch_tokens(const Config& config, const Plan& plan) {
  return rlhf::micro_batch_tokens(config.train, plan.modules.at(plan.trained).parameters.value("loss_rows", ""));
}

BatchArithmetic batch_arithmetic(const Config& config, const Plan& plan, int64_t examples, int64_t longest_prompt,
                                 int64_t longest_row) {
  BatchArithmetic n;
  n.rollouts = plan.rows == rlhf::RowKind::kPrompt;
  n.group_size = plan.group_size;
  n.rows = plan.rows_per_iteration;
  n.trained = trained_rows(plan, n.rows);
  n.rows_per_update =
      config.train.samples_per_update == 0 ? n.trained : std::min<int64_t>(n.trained, config.train.samples_per_update);
  n.updates = updates_per_iteration(config, plan);
  n.total_updates = total_updates(config, plan);
  n.longest_prompt = longest_prompt;
  n.longest_row = n.rollouts ? longest_prompt + config.rollout.completion_tokens : longest_row;
  n.micro_batch_tokens = micro_batch_tokens(config, plan);
  n.micro_batches =
      most_micro_batches(n.rows_per_update, n.longest_row, n.micro_batch_tokens, n.rollouts ? 1 : n.group_size);
  n.examples = examples;
  count_epochs(config, n);
  n.examples_beyond = beyond_epochs(config, n);
  return n;
}

std::vector<std::string> arithmetic_lines(const BatchArithmetic& n, const Config& config) {
  std::vector<std::string> lines;
  const int64_t iterations = config.run.iterations;
  if (n.rollouts)
    lines.push_back(fmt::format("batch: {} × {} = {} per iteration", counted(n.rows / n.group_size, "prompt"),
                                counted(n.group_size, "sample"), counted(n.rows, "row")));
  else if (n.group_size > 1)
    lines.push_back(fmt::format("batch: {} × {} answers = {} per iteration", counted(n.rows / n.group_size, "pair"),
                                n.group_size, counted(n.rows, "row")));
  else
    lines.push_back(fmt::format("batch: {} per iteration", counted(n.rows, "row")));
  if (draws_in_rounds(config)) lines.push_back(rounds_line(config));
  const int64_t passes = config.train.ppo_epochs;
  lines.push_back(fmt::format("updates: {} ÷ {} per update{} = {} per iteration; {}",
                              counted(n.trained, n.trained == n.rows ? "row" : "trained row"), n.rows_per_update,
                              passes == 1 ? "" : fmt::format(" × {} passes (train.ppo_epochs)", passes), n.updates,
                              updates_of_run(n, iterations)));
  if (n.total_updates < kFewUpdates) lines.push_back(few_updates_line(n, config));
  if (n.examples < n.rows / n.group_size && n.epoch_iterations == 0)
    lines.push_back(
        fmt::format("warning: an iteration reads {}, and data.train has {}: each is read several times in one "
                    "iteration",
                    counted(n.rows / n.group_size, "example"), n.examples));
  if (n.trained % n.rows_per_update != 0)
    lines.push_back(fmt::format(
        "warning: the last update of each iteration has {} of {} rows; try a train.samples_per_update that divides {}",
        n.trained % n.rows_per_update, n.rows_per_update, n.trained));
  const std::string longest = n.rollouts ? fmt::format("{} (prompt) + {} (completion) = {}", n.longest_prompt,
                                                       config.rollout.completion_tokens.get(), n.longest_row)
                                         : std::to_string(n.longest_row);
  lines.push_back(fmt::format("micro-batches: at most {} per update, of up to {} tokens each; {} of at most {} tokens",
                              n.micro_batches, n.micro_batch_tokens, counted(n.rows_per_update, "row"), longest));
  lines.push_back(rate_line(n, config.train));
  lines.push_back(length_line(n, config));
  return lines;
}

nlohmann::ordered_json to_json(const BatchArithmetic& n) {
  return {{"rows_per_iteration", n.rows},
          {"rows_per_example", n.group_size},
          {"rows_per_update", n.rows_per_update},
          {"updates_per_iteration", n.updates},
          {"updates", n.total_updates},
          {"longest_prompt_tokens", n.longest_prompt},
          {"longest_row_tokens", n.longest_row},
          {"micro_batches_per_update_at_most", n.micro_batches},
          {"examples", n.examples},
          {"epochs", n.epochs},
          {"examples_beyond_epochs", n.examples_beyond}};
}

}  // namespace collimate::recipe
