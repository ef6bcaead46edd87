#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/flow/executor.h"
#include "collimate/flow/registry.h"
#include "collimate/graph/trace.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/evaluation/asked_measures.h"
#include "collimate/recipe/evaluation/measure.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/rlhf/types/answer.h"
#include "collimate/rlhf/types/divergence.h"
#include "collimate/rlhf/types/loss.h"

namespace collimate::recipe {

// Describes a number that an evaluation finds for each row of data, for people who read samples: "loss" (nats per
// trained token), "score", "lowest_step_score", "implicit_reward" (of DPO and KTO: beta times the log-ratio of policy
// and reference), "log_prob" (per trained token) or "log_prob_sum" (of a choice).
struct RowNumber {
  std::string name;
  std::function<double(const Batch& rows, int64_t row)> of;
};

// Describes an evaluation of held-out quality: a graph over the run's models, and what its rows say.
struct EvaluationPlan {
  AskedMeasure asked;
  std::string name;  // its metrics are val/NAME/…, and val/… where it is ""
  MeasureKind measured = MeasureKind::kCompletions;
  graph::Graph graph;
  std::function<std::vector<Measure>(const Batch& rows)> measures;
  std::optional<RowNumber> row_number;  // nothing where the rows are completions, which have rewards
  bool measures_loss = false;           // val/loss, which run.patience watches, is among the measures
  bool answers = false;                 // the model answers a few prompts itself: rows bring rlhf::kAsked
  bool of_training = false;             // the rows are a few of data.train, for people who read samples: no measures
  // Returns the full name of one of the evaluation's metrics: "val/accuracy", "val/choices/acc".
  std::string metric(const std::string& measure) const { return "val/" + (name.empty() ? "" : name + "/") + measure; }

  std::string judge;  // model of the rewards that judge held-out rows; "" where a reward model or nothing judges
};

// Holds everything that a run needs beside data and placement, as a recipe's page makes it. Plain data.
struct Plan {
  graph::Graph graph;
  std::map<std::string, flow::ModuleChoice> modules;  // by model of the training's graph or an evaluation's
  rlhf::RowKind rows = rlhf::RowKind::kPrompt;
  bool prompt_is_trained = false;  // pairs whose `trainable` marks the prompt too, and `completion` the answer alone
  bool margins = false;            // pairs with the data's margins
  bool padded_pairs = false;       // pairs whose rows are padded to one length (rlhf/prompt/divergence_region.h)
  bool mismatched = false;         // marked rows come with answers to other prompts, for the estimate of a KL
  int64_t rows_per_iteration = 0;
  // With data.last_batch: retain the last of each `epoch_iterations` iterations may have fewer rows, `last_rows`. 0:
  // all have the same number, or the data is not read yet (settle_iterations).
  int64_t epoch_iterations = 0, last_rows = 0;
  int64_t group_size = 1;
  bool compares_samples = false;   // advantages compare the samples of a prompt with each other
  bool greedy_baseline = false;    // the last sample of each prompt is greedy and is not trained
  bool draws_in_rounds = false;    // unfinished samples go on in the next iteration (rollout.round_shares)
  bool learns_to_stop = true;      // the trained model generates: each row of data ends as a completion does
  std::string samples_node;        // id of the node whose rows are the samples of an iteration; "" for none
  std::string trained;             // the model that the run is for, which is exported
  std::set<std::string> trainers;  // models that train
  std::set<std::string> rewards;   // models that are a list of rewards
  // These are verl's names of the phases by node, which metrics have: {"policy.generate": "gen"}. A node that the page
  // does not name gets the usual name of its kind of module, or its own id.
  std::map<std::string, std::string> phases;
  std::vector<EvaluationPlan> evaluations;
  std::vector<std::string> plugins;  // files of the config's plugins, which are inputs of the run
  // Among the options that not every recipe reads (unread.cpp), the page reads these: "algorithm.beta", or "rollout"
  // for a whole section.
  std::set<std::string> read_options;

  // Returns whether the graph of the training or of an evaluation calls the function.
  bool calls(const std::string& model, const std::string& function) const;
  // Returns whether some of the evaluations are of held-out rows.
  bool measures() const {
    return std::ranges::any_of(evaluations, [](const EvaluationPlan& plan) { return !plan.of_training; });
  }
};

// Makes handles for a page's models and notes their modules.
class Page {
 public:
  Page(const Config& config, const flow::Registry& registry) : config_(config), registry_(registry) {}

  // Says what part a decoder plays in the page. `of` names its section of the config (models.<of>) and thereby its
  // directory.
  struct Role {
    std::string of = "policy";
    std::string weights;  // identity; roles of one worker with the same identity share the weights
    bool trained = false;
    std::string head = "lm";
    std::string rows;  // of a trained model: LossEntry::rows of its losses
    std::string loss;  // of a trained model: its loss where the config names none
  };
  graph::ModelHandle generator(const std::string& model, const Role& role);
  // Makes the generator of a recipe on answers, which draws a share of the answers anew (algorithm.on_policy_share).
  graph::ModelHandle redrawer(const std::string& model, const Role& role);
  // Returns the samples of the prompts that a generator draws; with rollout.round_shares those that are to be trained.
  // Where its key-value cache rounds keys and values they also have old_log_probs, which the same weights give them
  // without rounding.
  graph::Value samples(const graph::ModelHandle& generator, const graph::Value& prompts);
  // Makes the filter that holds back samples which go on in the next iteration; nothing where samples are drawn whole.
  std::optional<graph::ModelHandle> finished_samples();
  graph::ModelHandle scorer(const std::string& model, const Role& role);
  graph::ModelHandle trainer(const std::string& model, const Role& role);
  // Makes the frozen model "teacher" of losses on "taught completions". Throws InputError where the config names none.
  graph::ModelHandle teacher();
  // Makes a model of a list of rewards. `answers`: its rows get a column of what each sample answers. Throws InputError
  // where the list is null.
  graph::ModelHandle rewards(const std::string& model, const nlohmann::json& list, bool answers = false);
  // Makes a model of another kind, which the program registers (register_module). `parameters` go to its constructor.
  graph::ModelHandle model(const std::string& model, const std::string& kind,
                           const nlohmann::json& parameters = nlohmann::json::object());
  std::string unused_name(const std::string& model) const;  // the name itself, or with a number behind it
  // Returns the rewards of held-out completions: those of the measure, else those of the training. Throws InputError
  // where there are none.
  const nlohmann::json& rules_of(const AskedMeasure& asked) const;
  // Makes the advantages from `rows` ("groups" or "values"), by algorithm.advantage, else by `fallback`. Throws
  // InputError where their options do not fit the rollout's.
  graph::ModelHandle advantages(const std::string& rows, const std::string& fallback);
  // Makes a filter of sample groups whose samples all have the same reward, where rollout.replace_equal_groups asks for
  // it. Throws InputError where every group has one sample.
  std::optional<graph::ModelHandle> mixed_groups();
  // Throws InputError where an update has one row, as the estimate needs answers to other prompts of the same update.
  void require_two_rows() const;
  // Throws InputError where several losses compare with the teacher, or where answers are drawn that are not what the
  // rows train.
  void check_taught() const;
  // Makes KTO's estimate of the KL from answers to other prompts.
  graph::ModelHandle kl_estimate();
  // Returns whether these advantages read the log-probs of a reference, as they do where the KL is in the rewards.
  bool advantages_read_reference(const std::string& rows, const std::string& fallback) const;
  // Returns whether the last sample of each prompt is a greedy one, with which advantages compare the others. This is
  // known after advantages().
  bool greedy_baseline() const { return greedy_baseline_; }
  // Returns the input with the prompts of the training, and with the columns that advantages and data.ptx ask for.
  graph::Input prompts() const;
  // Makes a model that measures held-out rows with the weights that `trainer` trains. `kind` is "scorer" or
  // "generator", and its rows have at most `row_tokens` tokens.
  graph::ModelHandle measuring(const std::string& kind, const graph::ModelHandle& trainer, int64_t row_tokens);
  // Allows a config to name a role of `models` that the page reads only with other options.
  void may_read(const std::string& role) { roles_.insert(role); }
  // Notes an option for Plan::read_options.
  void reads(const std::string& option) { read_options_.insert(option); }
  // Throws InputError unless the config names a reward model that is not new. Such a model gives the rewards where no
  // rules do, and has to be trained: a new head gives every sample 0.
  void require_reward_model() const;
  // Returns the loss that trainer() with this role trains by.
  rlhf::Loss loss(const Role& role) const;
  // Completes the plan with the page's modules and the options that they read. The evaluations' models join those of
  // the training, with which they share workers and weights. Throws InputError when the config names a role under
  // `models` that no module reads, when rollout.replace_equal_groups is set and the page has no filter, and when
  // rollout.round_shares does not fit the rest of the config or the page.
  Plan finish(Plan plan) const;

  // Returns the options of a train node, rows_per_update and epochs.
  graph::With updates() const;
  const Config& config() const { return config_; }

 private:
  graph::ModelHandle add(const std::string& model, const std::string& kind, nlohmann::json parameters);
  nlohmann::json decoder_parameters(const Role& role);
  rlhf::AlgorithmSection algorithm(const Role& role) const;
  void check_roles() const;
  void check_replacing() const;
  void check_rounds() const;

  const Config& config_;
  const flow::Registry& registry_;
  std::map<std::string, flow::ModuleChoice> modules_;
  std::vector<graph::WeightLink> links_;      // from trainers to the models of measuring()
  std::set<std::string> trainers_, rewards_;  // as in Plan
  std::set<std::string> read_options_;
  std::set<std::string> roles_ = {"policy"};  // of models; rewards and data read the policy's tokenizer
  bool compares_samples_ = false, greedy_baseline_ = false;
};

// These are the inputs of pages, by the rows that data gives.
graph::Input prompt_input(bool greedy_baseline = false, bool texts = false);  // prompts to complete; with data.ptx
graph::Input completion_input();                                              // prompt + completion
graph::Input pair_input(const rlhf::Loss& loss = {});  // chosen, rejected, with what the loss reads of the data
graph::Input redrawn_input();                          // completion_input() with what a redrawer reads
graph::Input marked_input(bool mismatched = false);    // marked answers
graph::Input step_input();                             // answers in steps with labels
graph::Input asked(graph::Input input);                // `input` with what "answers" reads
graph::Input choice_input();                           // prompt + one of its choices: see recipe/evaluation/choices.h

// Says whether the config's recipe draws samples over several iterations.
bool draws_in_rounds(const Config& config);
// Returns what is common to the plans of recipes that draw samples, give them `advantages` and train a
// `policy_trainer`.
Plan rollout_plan(const Config& config);
// Returns what is common to the plans of recipes on pairs, with what the trained model's loss reads of them.
Plan pair_plan(Page& page, const Page::Role& trained);
// Returns how many of an iteration's `rows` rows are trained: all but the greedy samples of a baseline.
int64_t trained_rows(const Plan& plan, int64_t rows);
// Return how many updates (optimizer steps) a train node makes in an iteration, in one of so many rows, and in the run.
int64_t updates_per_iteration(const Config& config, const Plan& plan);
int64_t updates_of_rows(const Config& config, const Plan& plan, int64_t rows);
int64_t total_updates(const Config& config, const Plan& plan);
// Tells the trainers' modules these numbers, as the schedule of the learning rate ends with the run.
void tell_updates(const Config& config, Plan& plan);

}  // namespace collimate::recipe
