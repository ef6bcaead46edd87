#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/option.h"
#include "collimate/base/section_map.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/rlhf/modules/options.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/chat_template.h"

namespace collimate::recipe {

struct DataOptions : base::Section {
  base::Option<nlohmann::json> train{
      this, "train", nullptr, "", "file, or list of files or {path, format, weight, columns}", base::entry_list{}};
  base::Option<nlohmann::json> eval{this, "eval", nullptr, "", "held-out data, the same way", base::entry_list{}};
  base::Option<int64_t> max_tokens{this,
                                   "max_tokens",
                                   1024,
                                   "tokens",
                                   "longest row of completions or pairs; data.long_rows says what becomes of others",
                                   base::at_least(int64_t{2})};
  base::Option<std::string> long_rows{
      this,
      "long_rows",
      "stop",
      "",
      "rows of more than data.max_tokens, or prompts of more than rollout.prompt_tokens: stop with an error, drop "
      "them, or truncate them (a row loses its end, a prompt its beginning)",
      base::one_of({"stop", "drop", "truncate"})};
  base::Option<std::string> bad_rows{
      this,
      "bad_rows",
      "stop",
      "",
      "rows that cannot be read, or that have nothing to train on: stop with an error, or drop them",
      base::one_of({"stop", "drop"})};
  base::Option<std::string> train_on{this,
                                     "train_on",
                                     "completion",
                                     "",
                                     "the tokens of an sft row that carry loss: its last answer, all of its "
                                     "assistant's turns, or the prompt too",
                                     base::one_of({"completion", "assistant_turns", "all_tokens"})};
  base::Option<bool> shuffle{this, "shuffle", true, "", "a new order each epoch"};

  text::TrainOn trained_tokens() const;    // train_on
  rlhf::LongRows long_row_choice() const;  // long_rows
};

struct EvaluationOptions : generate::SamplingOptions {
  EvaluationOptions() : SamplingOptions(0.0) {}

  base::Option<int64_t> examples{
      this, "examples", 0, "examples", "of data.eval; 0 for all", base::at_least(int64_t{0})};
  base::Option<int64_t> samples_per_prompt{
      this,
      "samples_per_prompt",
      1,
      "samples",
      "completions drawn for each prompt; several add val/pass@k, val/mean@n, val/best@n and val/maj@n",
      base::at_least(int64_t{1})};
  base::Option<nlohmann::json> reward{
      this, "reward", nullptr, "", "list of rewards; default: the training's", base::entry_list{}};
};

struct RunOptions : base::Section {
  base::Option<int64_t> iterations{this,
                                   "iterations",
                                   100,
                                   "iterations",
                                   "each reads rows, draws samples where the recipe does, and updates",
                                   base::at_least(int64_t{1})};
  base::Option<std::optional<double>> epochs{this,
                                             "epochs",
                                             std::nullopt,
                                             "epochs",
                                             "passes over data.train, in the place of run.iterations",
                                             base::above(0.0)};
  base::Option<int64_t> seed{this, "seed", 1234, "", "of everything random", base::at_least(int64_t{0})};
  base::Option<int64_t> save_every{this,
                                   "save_every",
                                   50,
                                   "iterations",
                                   "between checkpoints; 0 for the last one only",
                                   base::at_least(int64_t{0}),
                                   base::outside_hash{}};
  base::Option<int64_t> keep_checkpoints{this,          "keep_checkpoints",       2,
                                         "checkpoints", "older ones are removed", base::at_least(int64_t{1})};
  base::Option<int64_t> evaluate_every{this,
                                       "evaluate_every",
                                       0,
                                       "iterations",
                                       "between evaluations; 0 for before and after only",
                                       base::at_least(int64_t{0})};
  base::Option<int64_t> patience{this,
                                 "patience",
                                 0,
                                 "evaluations",
                                 "stop when val/loss has not fallen for so many; 0 never",
                                 base::at_least(int64_t{0})};
  base::Option<int64_t> samples_every{this,
                                      "samples_every",
                                      10,
                                      "iterations",
                                      "between files of samples; 0 for first and last only",
                                      base::at_least(int64_t{0})};
  base::Option<int64_t> threads{this,
                                "threads",
                                0,
                                "threads",
                                "of each device's worker; 0 shares out the cores",
                                base::at_least(int64_t{0}),
                                base::outside_hash{}};
  base::Option<int64_t> memory_budget{
      this,
      "memory_budget",
      0,
      "MiB",
      "of each device's worker: a plan or a run that needs more is an error that names the item; 0 for none",
      base::at_least(int64_t{0}),
      base::outside_hash{}};
  base::Option<double> deadline_seconds{this,
                                        "deadline_seconds",
                                        600.0,
                                        "seconds",
                                        "without progress before a wait is an error",
                                        base::above(0.0),
                                        base::outside_hash{}};
};

struct LogOptions : base::Section {
  base::Option<std::string> names{
      this, "names", "verl", "", "whose metric names", base::one_of({"verl", "trl"}), base::outside_hash{}};
  base::Option<bool> tensorboard{
      this, "tensorboard", false, "", "the metrics as TensorBoard's events in tensorboard/ too", base::outside_hash{}};
  base::Option<bool> wandb{
      this,
      "wandb",
      false,
      "",
      "the metrics as an offline run of Weights & Biases in wandb/ too, for wandb sync; nothing is "
      "sent",
      base::outside_hash{}};
  base::Option<bool> profile{
      this,
      "profile",
      false,
      "",
      "where the slowest iteration's time went, by function and operation, in profile.txt and in "
      "the log; timing costs less than 1 % of the run",
      base::outside_hash{}};
};

// The whole configuration of a run: one YAML file.
struct Config : base::Section {
  Config();
  std::string section_remedy(const std::string& key) const override;  // recipe/other_names.h

  base::Option<std::string> recipe;  // one of recipe_names(), recipe/list.h
  base::SectionMap<rlhf::ModelOptions> models{
      this, "models",
      "by role: policy, and where they differ from it reference, value, reward; {policy: DIR} is short "
      "for {policy: {path: DIR}}",
      "path"};
  base::Option<bool> download{this,
                              "download",
                              false,
                              "",
                              "download models named as on a hub (org/model) that Hugging Face's local cache does not "
                              "have, by PyPI's huggingface_hub",
                              base::outside_hash{}};
  base::Nested<DataOptions> data{this, "data", "what to train and evaluate on"};
  base::Option<nlohmann::json> reward{this,
                                      "reward",
                                      nullptr,
                                      "",
                                      "list of {rule: NAME} or {python: FILE.py:function}, with weight and on_error: "
                                      "see collimate help rewards",
                                      base::entry_list{}};
  base::Nested<rlhf::AlgorithmSection> algorithm{this, "algorithm", "constants of the recipe's loss and advantages"};
  base::Nested<rlhf::RolloutOptions> rollout{this, "rollout", "how samples are drawn"};
  base::Nested<rlhf::TrainOptions> train{this, "train", "optimizer and updates"};
  base::Nested<EvaluationOptions> evaluation{
      this, "evaluation",
      "how held-out quality is measured; val/accuracy of completions is the share of them with a reward of 1 or more, "
      "where rules, not a reward model, judge"};
  base::Nested<RunOptions> run{this, "run", "length and housekeeping"};
  base::Option<nlohmann::json> placement{
      this, "placement", "flattening", "",
      "flattening, auto (the planner's choice; {auto: FILE} with its constants), or a placement "
      "file, or {groups: …}"};
  base::Option<int64_t> devices{
      this, "devices", 1, "devices", "CPU devices when placement is a name", base::at_least(int64_t{1})};
  base::Option<std::string> cluster{this,
                                    "cluster",
                                    "local",
                                    "",
                                    "where workers run: threads or processes of this machine",
                                    base::one_of({"local", "local-processes"}),
                                    base::outside_hash{}};
  base::Nested<LogOptions> log{this, "log", "names of metrics"};

  // The model of a role; one that the user does not name is the policy. InputError without a policy.
  const rlhf::ModelOptions& model(const std::string& role) const;
};

// Reads and checks a file with `--set a.b=c` overrides; entries of rewards get the defaults of what they leave out.
// InputError with file and line.
Config load(const std::string& path, const std::vector<std::string>& sets);

}  // namespace collimate::recipe
