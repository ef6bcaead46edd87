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
#include "collimate/rlhf/reward/reward.h"
#include "collimate/text/chat_template.h"

namespace collimate::recipe {

struct DataOptions : base::Section {
  COLLIMATE_OPTION(nlohmann::json, train, nullptr, "",
                   "the data to train on: a file, or a list of files or of {path, format, weight, columns}",
                   base::entry_list{});
  COLLIMATE_OPTION(nlohmann::json, eval, nullptr, "",
                   "held-out data, which is measured and never trained on; written like data.train",
                   base::entry_list{});
  COLLIMATE_OPTION(nlohmann::json, ptx, nullptr, "",
                   "texts for a language-model loss beside the policy's own (train.ptx_weight), of which each sample "
                   "brings a row to its update; written like data.train",
                   base::entry_list{});
  COLLIMATE_OPTION(double, val_size, 0.0, "rows",
                   "how many rows of data.train are held out, drawn by run.seed, in the place of data.eval: a share "
                   "below 1, or a number of rows; 0 for none",
                   base::at_least(0.0),
                   base::only_with{"eval", [](const nlohmann::json& eval) { return eval.is_null(); }});
  COLLIMATE_OPTION(int64_t, max_tokens, 1024, "tokens",
                   "the longest row of completions or pairs; data.long_rows says what happens to longer ones",
                   base::at_least(int64_t{2}));
  COLLIMATE_OPTION(
      std::string, long_rows, "stop", "",
      "what happens to rows longer than data.max_tokens, and to prompts longer than rollout.prompt_tokens: stop ends "
      "the run with an error, drop leaves them out, truncate cuts the end of a row or the beginning of a prompt",
      base::one_of({"stop", "drop", "truncate"}));
  COLLIMATE_OPTION(std::string, bad_rows, "stop", "",
                   "what happens to rows that cannot be read or have nothing to train on: stop ends the run with an "
                   "error, drop leaves them out",
                   base::one_of({"stop", "drop"}));
  COLLIMATE_OPTION(
      bool, train_from_difference, false, "",
      "dpo: train both answers of a pair from the first token on in which they differ, as DeepSpeed-Chat does");
  COLLIMATE_OPTION(std::string, step_separator, "\n", "",
                   "process_reward: follows each step of an answer; its last token is where the step is scored",
                   base::satisfying("a text", [](const std::string& text) { return !text.empty(); }));
  COLLIMATE_OPTION(std::string, train_on, "completion", "",
                   "which tokens of an sft row are trained: the last answer, all turns of the assistant, or all tokens "
                   "with the prompt",
                   base::one_of({"completion", "assistant_turns", "all_tokens"}));
  COLLIMATE_OPTION(bool, shuffle, true, "", "read the rows in a new order in each epoch");
  COLLIMATE_OPTION(
      std::string, last_batch, "cycle", "",
      "what happens to the rows at the end of an epoch that are fewer than an iteration reads: cycle reads the next "
      "epoch's first rows beside them, drop leaves them out of that epoch, retain makes a smaller iteration of them",
      base::one_of({"cycle", "drop", "retain"}));

  bool holds_out() const { return !eval->is_null() || val_size > 0; }  // are there held-out rows?
  text::TrainOn trained_tokens() const;                                // train_on
  rlhf::LongRows long_row_choice() const;                              // long_rows
  rlhf::LastBatch last_batch_choice() const;                           // last_batch
};

// Says how one measure is taken of held-out rows.
struct MeasureOptions : generate::SamplingOptions {
  MeasureOptions() : SamplingOptions(0.0) {}

  COLLIMATE_OPTION(int64_t, examples, 0, "examples", "how many held-out examples are measured; 0 for all",
                   base::at_least(int64_t{0}));
  COLLIMATE_OPTION(int64_t, samples_per_prompt, 1, "samples",
                   "completions drawn for each prompt; several add val/pass@k, val/mean@n, val/best@n and val/maj@n",
                   base::at_least(int64_t{1}));
  COLLIMATE_OPTION(nlohmann::json, reward, nullptr, "",
                   "rewards of held-out completions; by default those of the training", base::entry_list{},
                   base::hashed_part<nlohmann::json>{rlhf::hashed_rewards});
  COLLIMATE_OPTION(std::optional<int64_t>, max_tokens, std::nullopt, "tokens",
                   "most tokens of a held-out completion; by default rollout.completion_tokens, or 128 if the recipe "
                   "draws no samples",
                   base::at_least(int64_t{1}));
};

// Returns a list of measures as the hash of a config reads it: without the keys of their rewards that say where and
// with which rights these run (rlhf::hashed_rewards).
nlohmann::json hashed_measures(const nlohmann::json& list);

struct EvaluationOptions : MeasureOptions {
  COLLIMATE_OPTION(
      nlohmann::json, measure, nullptr, "",
      "what is measured: perplexity, pairs, completions, choices, marked or steps, as collimate eval "
      "measures it, or a list of them; an entry {measure: choices, data: FILE} has data and options of its own; by "
      "default what the recipe measures",
      base::entry_list{}, base::hashed_part<nlohmann::json>{hashed_measures});
};

struct RunOptions : base::Section {
  COLLIMATE_OPTION(
      int64_t, iterations, 100, "iterations",
      "length of the run; an iteration reads rows, draws samples if the recipe does, and updates the model",
      base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(std::optional<double>, epochs, std::nullopt, "epochs",
                   "length of the run as passes over data.train, instead of run.iterations", base::above(0.0),
                   base::outside_hash{});
  COLLIMATE_OPTION(int64_t, seed, 1234, "", "seed of everything random", base::at_least(int64_t{0}));
  COLLIMATE_OPTION(int64_t, save_every, 50, "iterations", "how often a checkpoint is saved; 0 saves only the last one",
                   base::at_least(int64_t{0}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, keep_checkpoints, 2, "checkpoints", "how many checkpoints are kept; older ones are removed",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, best_metric, "", "",
                   "metric of metrics.jsonl, val/accuracy say: the checkpoint that is best by it is kept beside the "
                   "newest ones, and the model that the run leaves is that one's; empty: the last one's",
                   base::outside_hash{});
  COLLIMATE_OPTION(int64_t, evaluate_every, 0, "iterations",
                   "how often data.eval is measured; 0 measures only before and after the run",
                   base::at_least(int64_t{0}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, patience, 0, "evaluations",
                   "the run stops when val/loss has not fallen for so many evaluations; 0 never stops it",
                   base::at_least(int64_t{0}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, samples_every, 10, "iterations",
                   "how often samples are written; 0 writes only the first and the last", base::at_least(int64_t{0}),
                   base::outside_hash{});
  COLLIMATE_OPTION(
      int64_t, threads, 0, "threads",
      "threads of each device; 0 divides OMP_NUM_THREADS, or the cores where it is not set, among the devices",
      base::at_least(int64_t{0}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, memory_budget, 0, "MiB",
                   "memory limit of each device: a run that plans or needs more ends with an error that names the "
                   "item; 0 sets no limit",
                   base::at_least(int64_t{0}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, swap_directory, "", "directory",
                   "where models are that are off their device (placement.residency: swap), and optimizers "
                   "(train.offload); the run's own directory where it is empty",
                   base::outside_hash{});
  COLLIMATE_OPTION(double, deadline_seconds, 600.0, "seconds",
                   "how long a wait may last without progress before it is an error", base::above(0.0),
                   base::outside_hash{});
};

struct LogOptions : base::Section {
  COLLIMATE_OPTION(int64_t, every, 0, "iterations",
                   "how often a line of progress is written to the terminal; 0 writes about 20 in a run",
                   base::at_least(int64_t{0}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, names, "verl", "", "whose names the metrics have", base::one_of({"verl", "trl"}),
                   base::outside_hash{});
  COLLIMATE_OPTION(bool, tensorboard, false, "", "also write the metrics for TensorBoard, to tensorboard/",
                   base::outside_hash{});
  COLLIMATE_OPTION(
      bool, wandb, false, "",
      "also write the metrics as an offline run of Weights & Biases, to wandb/, for wandb sync; nothing is sent",
      base::outside_hash{});
  COLLIMATE_OPTION(
      bool, profile, false, "",
      "also write where the time of the slowest iteration went, by function and operation, to profile.txt and the log",
      base::outside_hash{});
};

// Holds the whole configuration of a run: one YAML file.
struct Config : base::Section {
  Config();
  base::KeyRemedy section_remedy(const std::string& key) const override;  // recipe/other_names.h

  base::Option<std::string> recipe;                 // one of recipe_names(), recipe/list.h
  base::Option<std::optional<std::string>> preset;  // one of preset_names(), recipe/preset.h
  COLLIMATE_OPTION(std::vector<std::string>, plugins, {}, "",
                   "files that register parts of your own, which the rest of the config may then name: shared "
                   "libraries (.so) with recipes, modules, losses, advantages and rewards, Python files (.py) with "
                   "flows, losses and modules; loaded before all else");
  COLLIMATE_OPTION(nlohmann::json, options, nlohmann::json::object(), "",
                   "what a recipe of your own lets a config set, {NAME: VALUE}; collimate help RECIPE lists it");
  base::SectionMap<rlhf::ModelOptions> models{this, "models",
                                              "the models by role: policy, and those of reference, value and reward "
                                              "that differ from it; {policy: DIR} is short for {policy: {path: DIR}}",
                                              "path"};
  COLLIMATE_OPTION(bool, download, false, "",
                   "download models named as on a hub (org/model, org/model@REVISION) that Hugging Face's local cache "
                   "does not have, with PyPI's huggingface_hub",
                   base::outside_hash{});
  base::Nested<DataOptions> data{this, "data", "the data to train on and to measure"};
  COLLIMATE_OPTION(nlohmann::json, reward, nullptr, "",
                   "a list of {rule: NAME}, {python: FILE.py:function}, {http: URL} and others, each with weight and "
                   "on_error; collimate help rewards lists them",
                   base::entry_list{}, base::hashed_part<nlohmann::json>{rlhf::hashed_rewards});
  base::Nested<rlhf::AlgorithmSection> algorithm{this, "algorithm", "constants of the recipe's loss and advantages"};
  base::Nested<rlhf::RolloutOptions> rollout{this, "rollout", "how the policy draws samples"};
  base::Nested<rlhf::TrainOptions> train{this, "train", "the optimizer and its updates"};
  base::Nested<EvaluationOptions> evaluation{this, "evaluation",
                                             "how held-out data is measured; val/accuracy of completions is the share "
                                             "with a reward of 1 or more, and is left out if a reward model judges"};
  base::Nested<RunOptions> run{this, "run", "length of the run, and what is kept of it"};
  COLLIMATE_OPTION(
      nlohmann::json, placement, "flattening", "",
      "which model is on which device: flattening (all on all), separation ({separation: 0.5}: training on that share "
      "of the devices, the rest apart from it), interleaving (frozen models side by side, the others on all), auto "
      "(the planner chooses; {auto: FILE} by the constants of FILE), a placement file, or {groups: …}",
      base::outside_hash{});
  COLLIMATE_OPTION(int64_t, devices, 1, "devices", "number of CPU devices, where placement is a name",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, tp, 1, "devices",
                   "how many devices share the matrices of each model (tensor parallelism), where placement is "
                   "flattening; a divisor of devices and of every model's heads",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, pp, 1, "devices",
                   "how many devices share the blocks of each model, each with some that follow each other (pipeline "
                   "parallelism), where placement is flattening; tp times pp divides devices",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, cp, 1, "devices",
                   "how many devices share the tokens of each row that is scored or trained (context parallelism), "
                   "where placement is flattening; tp times pp times cp divides devices",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, cp_kind, "gather", "",
                   "what the devices of cp exchange: gather brings the keys and values of all tokens to each; ulysses "
                   "gives each all tokens of some heads, where cp divides these",
                   base::one_of({"gather", "ulysses"}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, ep, 1, "devices",
                   "how many devices share the experts of each mixture, each with whole ones and rows of its own "
                   "(expert parallelism), where placement is flattening; a divisor of devices by tp and pp",
                   base::at_least(int64_t{1}), base::outside_hash{});
  COLLIMATE_OPTION(int64_t, zero, 1, "",
                   "what devices with the same rows of matrices share (stage of ZeRO), where placement is a name: 0 "
                   "nothing, 1 the optimizer, 2 also gradients, 3 also weights, of frozen models too",
                   base::between(int64_t{0}, int64_t{3}), base::outside_hash{});
  COLLIMATE_OPTION(std::string, cluster, "local", "", "where workers run: as threads or as processes of this machine",
                   base::one_of({"local", "local-processes"}), base::outside_hash{});
  base::Nested<LogOptions> log{this, "log", "how metrics are named and written"};

  // Is something measured beside the training?
  bool evaluates() const { return data.holds_out() || !evaluation.measure->is_null(); }
  // Are answers to the data's prompts drawn anew?
  bool redraws() const { return algorithm.on_policy_share > 0; }

  // Returns the model of a role, which is the policy's where the config names none. Throws InputError without a policy.
  const rlhf::ModelOptions& model(const std::string& role) const;
};

// Returns the learning rate of a config that sets none: the rate of its recipe, or ten times that with adapters.
double usual_rate(const Config& config);

// Reads and checks a file, with `--set a.b=c` overrides. Entries of reward lists get the defaults of the options that
// they leave out. A ChatLearn YAML is translated first (recipe/chatlearn/chatlearn.h). Throws InputError with file and
// line.
Config load(const std::string& path, const std::vector<std::string>& sets);
// Does as `load` with a config that a program holds. Its InputError names "config" in the place of file and line.
Config load_values(const nlohmann::json& values, const std::vector<std::string>& sets);
// Does as `load` with a config that was read or put together already. Its InputError calls the whole of it `name`.
Config load_source(const base::ConfigSource& source, const std::string& name);

}  // namespace collimate::recipe
