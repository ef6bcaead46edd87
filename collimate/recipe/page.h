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

// An evaluation finds this of a row of data, for people who read samples: "loss" (nats per trained token), "score",
// "implicit_reward" (of DPO: beta times the log-ratio of policy and reference) or "log_prob" (per trained token).
struct RowNumber {
  std::string name;
  std::function<double(const Batch& rows, int64_t row)> of;
};

// Held-out quality: a graph over the same models, and what its rows say.
struct EvaluationPlan {
  AskedMeasure asked;
  std::string name;  // its metrics are val/NAME/…, and val/… where it is ""
  MeasureKind measured = MeasureKind::kCompletions;
  graph::Graph graph;
  std::function<std::vector<Measure>(const Batch& rows)> measures;
  std::optional<RowNumber> row_number;  // nothing where the rows are completions, which have rewards
  bool measures_loss = false;           // val/loss is among the measures: what run.patience watches
  bool answers = false;                 // the model answers a few prompts itself: rows bring rlhf::kAsked
  bool of_training = false;             // the rows are a few of data.train, for people who read samples: no measures
  // Gives the full name of one of its metrics: "val/accuracy", "val/choices/acc".
  std::string metric(const std::string& measure) const { return "val/" + (name.empty() ? "" : name + "/") + measure; }

  std::string judge;  // the list of rewards that is of held-out rows alone; "" where a model judges, or nothing
};

// A recipe page gives a plan: everything a run needs beside data and placement. Plain data.
struct Plan {
  graph::Graph graph;
  std::map<std::string, flow::ModuleChoice> modules;  // by model of either graph
  rlhf::RowKind rows = rlhf::RowKind::kPrompt;
  bool prompt_is_trained = false;  // pairs whose `trainable` marks the prompt too, `completion` the answer
  bool margins = false;            // pairs with the data's margins
  bool mismatched = false;         // marked rows with answers to other prompts, for the estimate of a KL
  int64_t rows_per_iteration = 0;
  int64_t group_size = 1;
  bool compares_samples = false;   // advantages are between the samples of a prompt
  bool greedy_baseline = false;    // the last sample of each prompt is greedy and is not trained
  bool learns_to_stop = true;      // the trained model generates: each row of data ends as a completion does
  std::string samples_node;        // whose rows are the samples of an iteration; "" for none
  std::string trained;             // the model that the run is for: what is exported
  std::set<std::string> trainers;  // models that train
  std::set<std::string> rewards;   // models that are a list of rewards
  // verl's names of the phases, which metrics have: {"policy.generate": "gen"}. A node that the page gives none has the
  // usual one of its kind of module, or its own id.
  std::map<std::string, std::string> phases;
  std::vector<EvaluationPlan> evaluations;
  std::vector<std::string> plugins;  // files of the config's plugins, which are inputs of the run
  // The page reads these of the options that not every recipe reads (unread.cpp): "algorithm.beta"; "rollout" for all
  // of a section.
  std::set<std::string> read_options;

  // Whether the training's graph or an evaluation's calls a function.
  bool calls(const std::string& model, const std::string& function) const;
  // Some of the evaluations are of held-out rows.
  bool measures() const {
    return std::ranges::any_of(evaluations, [](const EvaluationPlan& plan) { return !plan.of_training; });
  }
};

// Makes handles for a page's models and notes their modules.
class Page {
 public:
  Page(const Config& config, const flow::Registry& registry) : config_(config), registry_(registry) {}

  // A role is what a decoder is in the page. `of` names the config section (models.<of>) and thereby the directory.
  struct Role {
    std::string of = "policy";
    std::string weights;  // identity; roles of one worker with the same identity share the weights
    bool trained = false;
    std::string head = "lm";
    std::string rows;  // of a trained model: whose losses (LossEntry::rows), and which where the config names none
    std::string loss;
  };
  graph::ModelHandle generator(const std::string& model, const Role& role);
  // The generator of a recipe on answers, which draws algorithm.on_policy_share of them anew.
  graph::ModelHandle redrawer(const std::string& model, const Role& role);
  // Samples of the prompts that a generator draws; where its cache rounds keys and values, with old_log_probs too,
  // which the same weights give them without rounding.
  graph::Value samples(const graph::ModelHandle& generator, const graph::Value& prompts) const;
  graph::ModelHandle scorer(const std::string& model, const Role& role);
  graph::ModelHandle trainer(const std::string& model, const Role& role);
  // The frozen model "teacher" of losses on "taught completions". InputError where the config names none.
  graph::ModelHandle teacher();
  // `answers`: with a column of what each sample answers.
  graph::ModelHandle rewards(const std::string& model, const nlohmann::json& list, bool answers = false);
  // A model of another kind: one that the program registers (register_module). `parameters` go to its constructor.
  graph::ModelHandle model(const std::string& model, const std::string& kind,
                           const nlohmann::json& parameters = nlohmann::json::object());
  std::string unused_name(const std::string& model) const;  // that one, or with a number behind it
  // The rewards of held-out completions: those of the measure, else of the training. InputError where there are none.
  const nlohmann::json& rules_of(const AskedMeasure& asked) const;
  // Advantages from `rows` ("groups" or "values"), by algorithm.advantage, else `fallback`.
  graph::ModelHandle advantages(const std::string& rows, const std::string& fallback);
  // A filter of sample groups whose samples all have the same reward, where rollout.replace_equal_groups asks for it.
  // InputError where every group has one sample.
  std::optional<graph::ModelHandle> mixed_groups();
  // InputError where an update has one row: the estimate is of answers to other prompts of the same update.
  void require_two_rows() const;
  // InputError where a teacher is compared by several losses, or an answer that is drawn is not what the rows train.
  void check_taught() const;
  // KTO's estimate of the KL from answers to other prompts.
  graph::ModelHandle kl_estimate();
  // Whether these read the log-probs of a reference: the KL is in the rewards.
  bool advantages_read_reference(const std::string& rows, const std::string& fallback) const;
  // The last sample of each prompt is a greedy one, with which advantages compare the others. Known after advantages().
  bool greedy_baseline() const { return greedy_baseline_; }
  // The prompts of the training, with what advantages and data.ptx ask for.
  graph::Input prompts() const;
  // The weights that `trainer` trains as a model that measures held-out rows: of this kind ("scorer" or "generator"),
  // with rows of at most so many tokens.
  graph::ModelHandle measuring(const std::string& kind, const graph::ModelHandle& trainer, int64_t row_tokens);
  // A role of `models` that only other options make the page read: a config may name it all the same.
  void may_read(const std::string& role) { roles_.insert(role); }
  // Notes an option for Plan::read_options.
  void reads(const std::string& option) { read_options_.insert(option); }
  // Where no rules give the rewards a model does, which must have been trained: a new head gives every sample 0.
  // InputError otherwise.
  void require_reward_model() const;
  // The loss that trainer() with this role trains by.
  rlhf::Loss loss(const Role& role) const;
  // The plan with the page's modules and what they read, the evaluations' models among the training's: they share
  // workers and weights. InputError when the config names a role under `models` that none of them reads, and when
  // rollout.replace_equal_groups is set and the page has no filter.
  Plan finish(Plan plan) const;

  // rows_per_update and epochs of a train node.
  graph::With updates() const;
  const Config& config() const { return config_; }

 private:
  graph::ModelHandle add(const std::string& model, const std::string& kind, nlohmann::json parameters);
  nlohmann::json decoder_parameters(const Role& role);
  rlhf::AlgorithmSection algorithm(const Role& role) const;
  void check_roles() const;
  void check_replacing() const;

  const Config& config_;
  const flow::Registry& registry_;
  std::map<std::string, flow::ModuleChoice> modules_;
  std::vector<graph::WeightLink> links_;      // to measuring()
  std::set<std::string> trainers_, rewards_;  // as in Plan
  std::set<std::string> read_options_;
  std::set<std::string> roles_ = {"policy"};  // of models; rewards and data read the policy's tokenizer
  bool compares_samples_ = false, greedy_baseline_ = false;
};

// Pages call their inputs so, by the rows that data gives.
graph::Input prompt_input(bool greedy_baseline = false, bool texts = false);  // prompts to complete; with data.ptx
graph::Input completion_input();                                              // prompt + completion
graph::Input pair_input(const rlhf::Loss& loss = {});  // chosen, rejected, with what the loss reads of the data
graph::Input redrawn_input();                          // the same with what a redrawer reads
graph::Input marked_input(bool mismatched = false);    // marked answers
graph::Input asked(graph::Input input);                // the same with what "answers" reads
graph::Input choice_input();                           // prompt + one of its choices: see recipe/evaluation/choices.h

// Returns what plans of recipes that draw samples, give them `advantages` and train a `policy_trainer` share.
Plan rollout_plan(const Config& config);
// Returns what plans of recipes on pairs share: what the trained model's loss reads of them.
Plan pair_plan(Page& page, const Page::Role& trained);
// Updates of a train node.
int64_t updates_per_iteration(const Config& config, const Plan& plan);
int64_t total_updates(const Config& config, const Plan& plan);  // of the run

}  // namespace collimate::recipe
