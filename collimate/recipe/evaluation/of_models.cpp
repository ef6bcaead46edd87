#include "collimate/recipe/evaluation/of_models.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/host/base_model.h"
#include "collimate/host/hub_download.h"
#include "collimate/recipe/check_rewards.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/evaluation/choices.h"
#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/records.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/modules/reward.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {
namespace {

using base::expectation;
using base::InputError;

// Returns the config of a run whose evaluation this is, with the first recipe that reads such rows.
Config config_of(const std::string& model, const EvaluationCall& call, MeasureKind measured) {
  const auto same_rows = [&](const RecipeEntry& entry) { return entry.rows == rows_of(measured); };
  Config config;
  nlohmann::json given = {{"recipe", std::ranges::find_if(recipes(), same_rows)->name},
                          {"models",
                           {{"policy",
                             {{"path", model},
                              {"compute", call.compute},
                              {"latent_cache", call.latent_cache},
                              {"reduction_chunks", call.reduction_chunks},
                              {"chat_template", call.chat_template},
                              {"chat_template_kwargs", call.chat_template_kwargs}}}}},
                          {"data", {{"eval", call.data}}},
                          {"evaluation", call.section},
                          {"rollout", {{"completion_tokens", call.completion_tokens}}},
                          {"run", {{"seed", call.seed}}}};
  given.update(call.layout);
  base::apply(given, "collimate eval", config);
  return config;
}

// Throws InputError for options of drawing and judging where nothing is drawn, and without a reward where completions
// are. Measures of every kind have `examples`.
void refuse_unused(const Config& config, const EvaluationCall& call, MeasureKind measured) {
  if (measured == MeasureKind::kCompletions) {
    if (config.evaluation.reward->is_null())
      throw InputError(expectation(call.names.of("reward"), "a reward that judges completions", "none", "exact"));
    return;
  }
  if (call.lines)
    throw InputError(expectation(call.names.of("output"), "completions, of which each is a line",
                                 fmt::format("the measure {}", words_of(measured).name(measured)),
                                 "a page: a file that ends in .html"));
  nlohmann::json set = base::to_json(config.evaluation.section_value());
  nlohmann::json unset = base::to_json(EvaluationOptions().section_value());
  set["latent_cache"] = call.latent_cache;
  unset["latent_cache"] = false;
  for (const auto& [name, value] : set.items())
    if (name != "examples" && value != unset.at(name))
      throw InputError(
          expectation(call.names.of(name),
                      fmt::format("nothing with the measure {}, for which no completion is drawn and judged",
                                  words_of(measured).name(measured)),
                      value.dump(), "leaving it out"));
}

// Holds one model and the data as it reads them.
class HeldOut {
 public:
  HeldOut(const std::string& model, const EvaluationCall& call)
      : call_(call),
        dataset_(
            text::Dataset::read(data_sources(call.data, call.names.of("data")), bad_rows_of(call.rows, call.names))),
        measured_(call.measured ? *call.measured
                                : measured_of(dataset_, !call.section.value("reward", nlohmann::json()).is_null())),
        config_(config_of(model, call, measured_)),
        asked_(asked_measures(config_).front()),
        tokenizer_(text::load_tokenizer(model)),
        shape_(shape::read_model_shape(host::base_directory(model))),
        renderer_(*tokenizer_, text::make_chat_template(*tokenizer_, call.chat_template, call.chat_template_kwargs),
                  {.end_turn = measured_ != MeasureKind::kChoices}) {
    refuse_unused(config_, call, measured_);
    if (config_.evaluation.examples > 0) dataset_.keep_first(config_.evaluation.examples);
    held_ = read();
    settle_lengths();
    if (measured_ == MeasureKind::kCompletions) warn_of_room();
    left_out_ = log_left_out(held_.notes(call.names.of("data"), dataset_, call.names));
  }

  ModelEvaluation measure() {
    if (measured_ == MeasureKind::kCompletions && call_.try_rewards) try_rewards();
    const flow::Registry registry = module_registry();
    Page page(config_, registry);
    const EvaluationPlan plan = plan_of(page);
    ModelEvaluation made{.model = config_.model("policy").path, .measured = measured_, .left_out = left_out_};
    Plan parts;
    parts.graph = plan.graph;
    for (const graph::Node& node : plan.graph.nodes) parts.phases[node.id] = "testing";
    Plan whole = page.finish(std::move(parts));
    const graph::Placement placement = make_placement(config_, whole);
    flow::run(plan.graph, placement, registry, options_of(whole, placement, plan, made));
    return made;
  }

 private:
  void try_rewards() const {
    TruthRows truths;
    for (int64_t r = 0; r < rows_.rows() && std::ssize(truths.samples) < kTriedRows; r += held_.group_size) {
      const auto prompt = rows_.row(batch::kIds, r).first(static_cast<size_t>(rows_.get(batch::kPromptTokens, r)));
      truths.add(held_.source->place(r / held_.group_size), tokenizer_->decode(prompt), rows_.json(batch::kExample, r));
    }
    require_rewards(call_.names.of("data"), config_.evaluation.reward.get(), truths);
  }

  HeldOutRows read() const {
    rlhf::SourceOptions options = held_out_options(config_, asked_, measured_, shape_.positions(), call_.names);
    const int64_t drawn = measured_ == MeasureKind::kCompletions ? call_.completion_tokens : 0;
    limit_rows(call_.rows, {shape_.positions(), drawn}, call_.names, options);
    return held_out_rows(dataset_, measured_, renderer_, std::move(options), call_.names);
  }

  void warn_of_room() const {
    std::vector<int64_t> prompts;
    for (int64_t r = 0; r < rows_.rows(); r += held_.group_size) prompts.push_back(rows_.get(batch::kPromptTokens, r));
    recipe::warn_of_room(prompts, {shape_.positions(), call_.completion_tokens}, call_.names);
  }

  // Sets the config's lengths: the longest prompt and, where nothing is drawn, at least the longest row.
  void settle_lengths() {
    const bool drawn = measured_ == MeasureKind::kCompletions;
    int64_t prompt = 1, row = config_.data.max_tokens;
    for (int64_t r = 0; r < rows_.rows(); ++r) {
      const int64_t tokens = rows_.length(batch::kIds.name, r);
      prompt = std::max(prompt, rows_.get(batch::kPromptTokens, r));
      row = std::max(row, tokens);
    }
    config_.rollout.prompt_tokens = prompt;
    if (!drawn) config_.data.max_tokens = row;
  }

  EvaluationPlan plan_of(Page& page) const {
    const bool score = shape_.head == shape::Head::kScore;
    if (score && measured_ == MeasureKind::kSteps)
      return step_evaluation(page.scorer("policy", {.weights = "policy", .head = "score"}));
    if (score && measured_ != MeasureKind::kPairs)
      throw InputError(expectation(config_.model("policy").path.get(),
                                   fmt::format("a language model, to measure {}", words_of(measured_).name(measured_)),
                                   "a reward model", "--measure pairs, with rows of chosen and rejected"));
    if (measured_ == MeasureKind::kSteps)
      throw InputError(expectation(config_.model("policy").path.get(), "a process reward model, to measure steps",
                                   "a language model", "the model of a run of recipe: process_reward"));
    const Page::Role role{.weights = "policy", .head = score ? "score" : "lm"};
    if (measured_ == MeasureKind::kCompletions)
      return completion_evaluation(page, asked_, page.generator("policy", role));
    const graph::ModelHandle model = page.scorer("policy", role);
    if (measured_ == MeasureKind::kPerplexity) return loss_evaluation(model);
    if (measured_ == MeasureKind::kChoices) return choice_evaluation(model);
    if (measured_ == MeasureKind::kMarked) return marked_log_prob_evaluation(model);
    return score ? pair_score_evaluation(model) : pair_log_prob_evaluation(model);
  }

  flow::RunOptions options_of(const Plan& whole, const graph::Placement& placement, const EvaluationPlan& plan,
                              ModelEvaluation& made) const {
    flow::RunOptions options;
    options.schedule = {.iterations = 1, .rows = rows_.rows(), .group_size = held_.group_size};
    options.seed = static_cast<uint64_t>(config_.run.seed.get());
    options.config = base::to_json(config_.section_value());
    options.modules = whole.modules;
    options.threads_per_worker = threads_of(config_, placement);
    if (config_.cluster == std::string("local-processes")) options.transport = flow::Transport::kProcesses;
    options.next_rows = [this](int64_t, int64_t first, int64_t count) { return rows_.slice(first, first + count); };
    options.on_iteration = [&](const flow::IterationResult& result) { take(result, plan, made); };
    options.on_poll = call_.on_poll;
    options.names_places = false;
    return options;
  }

  void take(const flow::IterationResult& result, const EvaluationPlan& plan, ModelEvaluation& made) const {
    made.seconds = result.seconds;
    if (const auto errors = result.metrics.find("reward/errors"); errors != result.metrics.end())
      made.failed_rewards = errors->get<double>();
    warn_of_failures(result, made);
    const auto rows = result.batches.find(plan.graph.nodes.back().id);
    if (rows == result.batches.end())
      throw base::RunError(expectation(made.model, "samples that rewards can judge", "none: every one was dropped"));
    made.rows = rows->second.rows();
    made.measures = plan.measures(rows->second);
    show(rows->second, made);
    if (call_.lines) made.lines = lines_of(rows->second);
  }

  // Warns once for all rewards that failed, with the first.
  static void warn_of_failures(const flow::IterationResult& result, const ModelEvaluation& made) {
    for (const auto& [name, note] : result.notes)
      if (name == "reward/errors")
        base::log_warning("{}: {} rewards failed, and their samples count as on_error says; the first: {}", made.model,
                          made.failed_rewards, note);
      else
        base::log_warning("{}: {}: {}", made.model, name, note);
  }

  std::vector<nlohmann::ordered_json> lines_of(const Batch& rows) const {
    std::vector<nlohmann::ordered_json> lines;
    const std::unordered_map<int64_t, int64_t> asked = rows_by_uid();
    const std::vector<rlhf::RewardSample> samples = rlhf::decode_samples(rows, *tokenizer_);
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const int64_t row = asked.at(rows.get(batch::kUid, r));
      nlohmann::ordered_json line = kept_columns(rows_.json(batch::kExample, row));
      if (held_.group_size > 1) line["sample"] = row % held_.group_size;
      line["completion"] = base::at(samples, r).completion;
      line["finish"] = generate::finish_reason(static_cast<generate::Finish>(rows.get(batch::kFinish, r)));
      line["reward"] = rows.get(batch::kReward, r);
      lines.push_back(std::move(line));
    }
    return lines;
  }

  std::unordered_map<int64_t, int64_t> rows_by_uid() const {
    std::unordered_map<int64_t, int64_t> rows;
    for (int64_t r = 0; r < rows_.rows(); ++r) rows[rows_.get(batch::kUid, r)] = r;
    return rows;
  }

  // Returns what a row scores, which `value_name` names.
  double value_of_row(const Batch& rows, int64_t r) const {
    if (rows.has(batch::kReward.name)) return rows.get(batch::kReward, r);
    const double sum = answer_log_prob(rows, r);
    return measured_ == MeasureKind::kChoices ? sum : sum / answer_tokens(rows, r);
  }
  std::string value_name(const Batch& rows) const {
    if (rows.has(batch::kReward.name)) return measured_ == MeasureKind::kPairs ? "score" : "reward";
    return measured_ == MeasureKind::kChoices ? "log-prob" : "log-prob per token";
  }

  // Shows the first units of the data that have rows, as a person reads them.
  void show(const Batch& rows, ModelEvaluation& made) const {
    constexpr size_t kMostUnits = 20;
    const std::unordered_map<int64_t, int64_t> asked = rows_by_uid();
    made.values = value_name(rows);
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const int64_t row = asked.at(rows.get(batch::kUid, r)), unit = rows_.get(batch::kPromptUid, row);
      const auto ids = rows.row(batch::kIds, r);
      const auto prompt = static_cast<size_t>(rows_.get(batch::kPromptTokens, row));
      rlhf::RewardSample texts = rlhf::decoded_sample(ids.first(prompt), ids.subspan(prompt), *tokenizer_);
      if (made.shown.empty() || made.shown.back().uid != unit) {
        if (made.shown.size() == kMostUnits) return;
        const bool judged = measured_ == MeasureKind::kCompletions;
        made.shown.push_back(
            {unit, std::move(texts.prompt), judged ? expected_of(rows_.json(batch::kExample, row)) : "", {}});
      }
      made.shown.back().outputs.push_back({std::move(texts.completion), value_of_row(rows, r)});
    }
  }

  const EvaluationCall& call_;
  text::Dataset dataset_;
  const MeasureKind measured_;
  Config config_;
  const AskedMeasure asked_;
  const std::unique_ptr<text::Tokenizer> tokenizer_;
  const shape::ModelShape shape_;
  const text::Renderer renderer_;
  HeldOutRows held_;
  std::vector<LeftOutRows> left_out_;
  const Batch& rows_ = held_.rows;
};

}  // namespace

MeasureKind measured_of(const text::Dataset& dataset, bool rewards) {
  const text::Example& first = dataset.first();
  if (rewards) return MeasureKind::kCompletions;
  if (has_choices(first)) return MeasureKind::kChoices;
  if (first.chosen && first.rejected) return MeasureKind::kPairs;
  if (first.completion && first.label) return MeasureKind::kMarked;
  if (!first.steps.empty()) return MeasureKind::kSteps;
  if (first.completion) return MeasureKind::kPerplexity;
  throw InputError(expectation(first.location.text(),
                               "a reward that judges completions, or rows with a completion, chosen and rejected, or "
                               "choices",
                               "prompts alone",
                               first.ground_truth.is_null() ? "--reward FILE.py:FUNCTION" : "--reward exact"));
}

ModelEvaluation evaluate(const std::string& model, const EvaluationCall& call) {
  return HeldOut(model, call).measure();
}

std::vector<ModelEvaluation> evaluate_each(const std::vector<std::string>& models, EvaluationCall& call,
                                           bool download) {
  std::vector<std::string> directories;  // a model that is missing is told before any is measured
  for (const std::string& model : models) directories.push_back(host::model_directory(model, download));
  for (const std::string& directory : directories) {
    if (!std::filesystem::is_directory(directory)) text::load_tokenizer(directory);  // says what there is instead
    shape::read_model_shape(host::base_directory(directory));
  }
  std::vector<ModelEvaluation> all;
  for (size_t i = 0; i < models.size(); ++i) {
    base::log_info("eval: {}", models[i]);
    all.push_back(evaluate(directories[i], call));
    all.back().model = models[i];
    call.measured = all.back().measured;
    call.try_rewards = false;
  }
  return all;
}

}  // namespace collimate::recipe
