#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/recipe/gym_entry.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/page.h"
#include "collimate/rlhf/types/rounds.h"

// This file has what a page does for samples that are drawn over several iterations (rollout.round_shares).
namespace collimate::recipe {
namespace {

constexpr const char *kFinishedSamples = "finished_samples", *kRoundShares = "rollout.round_shares",
                     *kRoundMinSamples = "rollout.round_min_samples", *kOneIteration = "leaving it out";

std::string shares_text(const Config& config) { return nlohmann::json(config.rollout.round_shares.get()).dump(); }

[[noreturn]] void refuse_shares(const Config& config, const std::string& expected, const std::string& remedy) {
  throw base::InputError(base::expectation(kRoundShares, expected, shares_text(config), remedy));
}

// Refuses what has no meaning for a sample whose tokens several versions of the weights draw, or that one iteration
// does not finish.
void check_beside(const Config& config) {
  if (!gym_entry(config).is_null())
    refuse_shares(config, "nothing beside reward.gym, with whose environment a sample is drawn in one iteration",
                  kOneIteration);
  if (config.rollout.kv_cache_dtype.type())
    refuse_shares(config,
                  "nothing beside a rollout.kv_cache_dtype that rounds, as old log-probs are then computed again, by "
                  "one version of the weights",
                  "rollout.kv_cache_dtype: auto");
  if (config.rollout.replace_equal_groups)
    refuse_shares(config, "nothing beside rollout.replace_equal_groups, whose new prompts are drawn to their ends",
                  "replace_equal_groups: false");
  if (config.data.last_batch != std::string("cycle"))
    refuse_shares(config, "nothing beside data.last_batch, as how many prompts an iteration begins is not known before",
                  "data.last_batch: cycle");
  if (config.train.router_replay == std::string("rollout"))
    refuse_shares(config, "nothing beside train.router_replay: rollout, as several versions choose a sample's experts",
                  "train.router_replay: compare");
  if (config.train.samples_per_update > 0 && config.train.lr_schedule != std::string("constant"))
    throw base::InputError(base::expectation(
        "train.samples_per_update",
        fmt::format("0 beside {} with lr_schedule {}, as how many samples an iteration finishes, and so how many "
                    "updates it makes, is not known before",
                    kRoundShares, config.train.lr_schedule.get()),
        std::to_string(config.train.samples_per_update), "train.lr_schedule: constant"));
}

void check_min_samples(const Config& config, bool compares_samples, bool greedy_baseline) {
  const int64_t least = config.rollout.round_min_samples, samples = config.rollout.samples_per_prompt;
  const auto fail = [&](const std::string& expected, const std::string& remedy) {
    throw base::InputError(base::expectation(kRoundMinSamples, expected, std::to_string(least), remedy));
  };
  if (least > samples) fail(fmt::format("at most the {} of rollout.samples_per_prompt", samples), "0, which is all");
  if (least == 1 && samples > 1 && compares_samples)
    fail("2 or more, as advantages compare the samples of a prompt with each other", "2");
  if (least > 0 && least < samples && greedy_baseline)
    fail("0, as the greedy sample of a prompt, with which the others are compared, may be the last to finish", "0");
}

}  // namespace

bool draws_in_rounds(const Config& config) {
  return !config.rollout.round_shares->empty() && find_recipe(config.recipe).rows == rlhf::RowKind::kPrompt;
}

std::optional<graph::ModelHandle> Page::finished_samples() {
  if (!draws_in_rounds(config_)) return std::nullopt;
  return add(kFinishedSamples, kFinishedSamples,
             nlohmann::json::object({{"min_samples", config_.rollout.round_min_samples.get()}}));
}

graph::Value Page::samples(const graph::ModelHandle& generator, const graph::Value& prompts) {
  graph::Value drawn = generator("generate", prompts);
  if (const auto finished = finished_samples()) return (*finished)("keep", drawn);
  return config_.rollout.kv_cache_dtype.type() ? generator("old_log_probs", drawn) : drawn;
}

graph::Input Page::prompts() const {
  graph::Input input = prompt_input(greedy_baseline_, !config_.data.ptx->is_null());
  if (draws_in_rounds(config_))
    input.columns.insert(input.columns.end(), {batch::kLogProbs.name, batch::kWeightsVersion.name, batch::kFinish.name,
                                               rlhf::kRound.name, rlhf::kTrainedBefore.name});
  return input;
}

void Page::check_rounds() const {
  if (!draws_in_rounds(config_)) return;
  config_.rollout.round_limits();
  check_beside(config_);
  check_min_samples(config_, compares_samples_, greedy_baseline_);
  if (!modules_.contains(kFinishedSamples))
    refuse_shares(config_,
                  fmt::format("nothing with recipe {}, whose page takes its samples from `generate` itself",
                              config_.recipe.get()),
                  "the page's samples(), or leaving it out");
}

}  // namespace collimate::recipe
