#include "collimate/recipe/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/generate/forms.h"
#include "collimate/host/base_model.h"
#include "collimate/model/huggingface_check.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/attempt.h"
#include "collimate/recipe/best_metric.h"
#include "collimate/recipe/check_models.h"
#include "collimate/recipe/check_rewards.h"
#include "collimate/recipe/far_values.h"
#include "collimate/recipe/memory_of.h"
#include "collimate/recipe/objective.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/preview.h"
#include "collimate/recipe/registry.h"
#include "collimate/recipe/trained_rows.h"
#include "collimate/recipe/unread.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/shape/param_spec.h"

namespace collimate::recipe {
namespace {

using base::expectation;

constexpr const char* kDrawn = "rollout.completion_tokens";

void check_bias(const std::string& section, const generate::SamplingOptions& sampling, const text::Tokenizer& tokenizer,
                std::vector<std::string>& problems) {
  const generate::LogitBias bias = sampling.values().logit_bias;
  if (bias.empty() || bias.rbegin()->first < tokenizer.vocab_size()) return;
  problems.push_back(expectation(section + ".logit_bias",
                                 fmt::format("token ids below the tokenizer's {}", tokenizer.vocab_size()),
                                 std::to_string(bias.rbegin()->first)));
}

// Adds the problem that the first rollout would have with the asked form of completions.
void check_form(const std::string& section, const generate::SamplingOptions& sampling, const text::Tokenizer& tokenizer,
                std::vector<std::string>& problems) {
  attempt(problems, [&] {
    generate::Forms(&tokenizer, tokenizer.vocab_size(), tokenizer.info().stop_ids).make(sampling.values(), section);
  });
}

// Adds what completions are asked for and this tokenizer cannot give. An entry of evaluation.measure has what
// `evaluation` says where it says nothing itself.
void check_sampled(const Config& config, const Plan& plan, const text::Tokenizer& tokenizer,
                   std::vector<std::string>& problems) {
  for (const auto& check_one : {&check_bias, &check_form}) {
    check_one("rollout", config.rollout, tokenizer, problems);
    check_one("evaluation", config.evaluation, tokenizer, problems);
  }
  const generate::SamplingParams usual = config.evaluation.values();
  for (const EvaluationPlan& evaluation : plan.evaluations) {
    const AskedMeasure& asked = evaluation.asked;
    const generate::SamplingParams own = asked.options.values();
    if (own.logit_bias != usual.logit_bias) check_bias(asked.key, asked.options, tokenizer, problems);
    if (own.regex != usual.regex || own.json_schema != usual.json_schema)
      check_form(asked.key, asked.options, tokenizer, problems);
  }
}

void check_weights(const Plan& plan, std::vector<std::string>& problems) {
  for (const auto& [name, module] : plan.modules) {
    const nlohmann::json& parameters = module.parameters;
    if (!parameters.contains("path") || parameters.value("from_scratch", false)) continue;
    attempt(problems, [&] {
      rlhf::DecoderOptions options;
      base::apply(parameters, "models", options);
      model::check_huggingface(options.path, options.head, rlhf::weights_options(options));
    });
  }
}

// Adds the problems that are not there yet, as models of one directory have the same ones.
void append_fresh(std::vector<std::string>& all, const std::vector<std::string>& more) {
  for (const std::string& problem : more)
    if (std::find(all.begin(), all.end(), problem) == all.end()) all.push_back(problem);
}

void check_schedule(const Config& config, const Plan& plan, const BatchArithmetic& n,
                    std::vector<std::string>& problems) {
  const int64_t warmup = config.train.warmup_updates;
  if (warmup >= n.total_updates && warmup > 0)
    problems.push_back(expectation(
        "train.warmup_updates", fmt::format("fewer than the run's {} updates", n.total_updates), std::to_string(warmup),
        fmt::format("a shorter warm-up, or more run.{}", config.run.epochs.get() ? "epochs" : "iterations")));
  if (plan.compares_samples && n.group_size < 2)
    problems.push_back(expectation("rollout.samples_per_prompt",
                                   "2 or more, as advantages compare the samples of a prompt with each other",
                                   std::to_string(n.group_size), "8"));
}

std::string first_rows(const std::vector<int64_t>& rows) {
  std::vector<int64_t> shown;
  for (size_t i = 0; i < std::min<size_t>(3, rows.size()); ++i) shown.push_back(rows[i] + 1);
  return fmt::format("{}{}", fmt::join(shown, ", "), rows.size() > 3 ? ", …" : "");
}

void check_masks(const DataPreview& data, const Plan& plan, const text::Tokenizer& tokenizer,
                 std::vector<std::string>& problems) {
  if (!data.masked.empty())
    problems.push_back(
        expectation(data.key, "a trained token in every row",
                    fmt::format("none in {} of {} (row {})", data.masked.size(), data.rows, first_rows(data.masked))));
  if (plan.learns_to_stop && !data.unended.empty())
    problems.push_back(expectation(
        data.key, fmt::format("rows whose last trained token ends a completion ({})", stop_text(tokenizer)),
        fmt::format("{} of {} that do not (row {}): the model would not learn to stop", data.unended.size(), data.rows,
                    first_rows(data.unended)),
        "a tokenizer with an EOS token, or a chat template whose end of turn generation_config.json names"));
}

void check_pairs(const DataPreview& data, Findings& found) {
  if (data.equal.empty()) return;
  const int64_t pairs = data.rows / 2;
  const bool all = static_cast<int64_t>(data.equal.size()) == pairs;
  const std::string problem =
      expectation(data.key, "chosen and rejected to differ",
                  fmt::format("the same in {} of {} pairs (pair {}): nothing is preferred in {}", data.equal.size(),
                              pairs, first_rows(data.equal), all ? "any" : "these"));
  if (all)
    found.problems.push_back(problem);
  else
    found.lines.push_back("warning: " + problem);
}

// Returns the most that the policy reads: rows, and prompts with their completions.
RowExtent extent_of(const Config& config, const Plan& plan, const RunData& data, const DataPreview& train) {
  const int64_t drawn = config.rollout.completion_tokens;
  const bool draws = train.kind == rlhf::RowKind::kPrompt;
  RowExtent extent{train.row.longest + (draws ? drawn : 0), train.largest_id, draws ? kDrawn : ""};
  if (config.redraws() && train.prompt.longest + drawn > extent.tokens) {
    extent.tokens = train.prompt.longest + drawn;
    extent.drawn_by = kDrawn;
  }
  if (data.ptx) extent.include(data.ptx->all(), 0, "");
  for (size_t i = 0; i < data.held_out.size(); ++i) {
    const EvaluationPlan& evaluation = plan.evaluations.at(i);
    const bool completes = evaluation.measured == MeasureKind::kCompletions;
    const AskedMeasure& asked = evaluation.asked;
    extent.include(data.held_out[i].rows, completes ? completion_tokens(asked, config) : 0,
                   asked.options.max_tokens.get() || !draws ? asked.key + ".max_tokens" : kDrawn);
  }
  return extent;
}

// Names the rows that fill up the last iteration of a run of epochs. After whole epochs these are read once more than
// all others.
std::string rounding_line(const Config& config, const BatchArithmetic& n, const rlhf::RowSource& rows) {
  const double epochs = *config.run.epochs.get();
  const int64_t read = config.run.iterations * n.rows / n.group_size;
  return fmt::format("run: run.epochs {} is {}; the last one is filled up with {} of data.train{} (row {})", epochs,
                     counted(config.run.iterations.get(), "iteration"), counted(n.examples_beyond, "example"),
                     epochs == std::floor(epochs) ? ", read once more" : "",
                     first_rows(rows.order(read - n.examples_beyond, n.examples_beyond)));
}

// Names the functions whose ranks share a model's matrices, weights or experts, or the tokens of rows. Returns "" where
// none do.
std::string sharing_text(const Plan& plan, const graph::Placement& placement) {
  std::set<std::string> found;
  for (const graph::Node& node : plan.graph.nodes) {
    const graph::Layout layout = placement.layout(node.model, node.function);
    std::vector<std::string> sizes;
    const char* kind = layout.cp_kind == graph::Layout().cp_kind ? "" : " ulysses";
    for (const auto& [axis, size, how] :
         {std::tuple("tp", layout.tp, ""), {"cp", layout.cp, kind}, {"ep", layout.ep, ""}})
      if (size > 1) sizes.push_back(fmt::format("{} {}{}", axis, size, how));
    if (layout.zero > 2) sizes.push_back(fmt::format("zero {}", layout.zero));
    if (!sizes.empty()) found.insert(fmt::format("{}.{} {}", node.model, node.function, fmt::join(sizes, " · ")));
  }
  return found.empty() ? "" : fmt::format("; {}", fmt::join(found, ", "));
}

std::string parameters_text(int64_t count) {
  const auto real = static_cast<double>(count);
  if (real < 1e6) return fmt::format("{} parameters", count);
  return real < 1e9 ? fmt::format("{:.1f} million parameters", real / 1e6)
                    : fmt::format("{:.1f} billion parameters", real / 1e9);
}

// Says what is trained: the recipe, and the policy with its size.
std::string recipe_line(const Config& config) {
  const rlhf::ModelOptions& policy = config.model("policy");
  const shape::ModelShape shape = shape::read_model_shape(host::base_directory(policy.path));
  int64_t parameters = 0;
  for (const shape::ParamSpec& spec : shape::param_specs(shape)) parameters += spec.count();
  return fmt::format("recipe: {}; policy: {}, a {} of {}{}", config.recipe.get(), policy.path.get(), shape.family,
                     parameters_text(parameters), policy.from_scratch ? " with random weights" : "");
}

std::string placement_line(const Config& config, const Plan& plan, const graph::Placement& placement) {
  const int threads = threads_of(config, placement);
  return fmt::format("placement: {}, {} each; {}{}", counted(placement.devices, "device"), counted(threads, "thread"),
                     counted(graph::worker_count(plan.graph, placement), "worker"), sharing_text(plan, placement));
}

void add_far_values(const Config& config, Findings& found) {
  attempt(found.refused, [&] {
    const auto shape_of = [&](const char* role) {
      return shape::read_model_shape(host::base_directory(config.model(role).path));
    };
    std::optional<shape::ModelShape> value;
    if (config.train.value_learning_rate > 0) value = shape_of("value");
    for (const std::string& text : far_values(config, shape_of("policy"), value ? &*value : nullptr))
      found.lines.push_back("warning: " + text);
  });
}

void add_trained_rows(const Plan& plan, const RunData& data, Findings& found) {
  for (size_t i = 0; i < data.held_out.size(); ++i) {
    const EvaluationPlan& evaluation = plan.evaluations.at(i);
    if (evaluation.of_training) continue;
    const std::string text = trained_rows_warning(data.held_out[i], evaluation.measured, *data.train, plan.rows);
    if (!text.empty()) found.lines.push_back("warning: " + text);
  }
}

// Adds what devices plan to hold, and which adapters are trained.
void add_memory(const Config& config, const Plan& plan, const graph::Placement& placement, Findings& found) {
  attempt(found.refused, [&] {
    const std::vector<flow::PlannedMemory> planned = checked_memory(config, plan, placement);
    for (const std::string& line : memory_lines(config, planned)) found.lines.push_back(line);
    found.facts["memory"] = to_json(planned);
  });
  attempt(found.refused, [&] {
    for (const std::string& line : adapter_lines(plan)) found.lines.push_back(line);
  });
}

}  // namespace

Findings inspect(const Config& config, const Plan& plan, const graph::Placement& placement, const RunData& data) {
  Findings found;
  found.lines = {recipe_line(config)};
  found.lines.insert(found.lines.end(), data.notes.begin(), data.notes.end());
  std::vector<DataPreview> previews = {preview("data.train", *data.train, plan.rows, *data.tokenizer)};
  for (size_t i = 0; i < data.held_out.size(); ++i)
    if (const HeldOutRows& held = data.held_out[i]; held.source)
      previews.push_back(preview(held.key, *held.source, rows_of(plan.evaluations.at(i).measured), *data.tokenizer));
  add_trained_rows(plan, data, found);
  const DataPreview& train = previews.front();
  const BatchArithmetic numbers =
      batch_arithmetic(config, plan, data.train->epoch_examples(), train.prompt.longest, train.row.longest);
  const std::vector<Objective> learned = objectives(plan);
  for (const std::string& line : objective_lines(learned)) found.lines.push_back(line);
  for (const std::string& line : arithmetic_lines(numbers, config)) found.lines.push_back(line);
  if (numbers.examples_beyond > 0) found.lines.push_back(rounding_line(config, numbers, *data.train));
  found.lines.push_back(placement_line(config, plan, placement));
  for (const std::string& idle : idle_options(config)) found.lines.push_back("warning: " + idle);
  add_far_values(config, found);
  found.facts["objective"] = to_json(learned);
  found.facts["batch"] = to_json(numbers);
  found.facts["data"] = nlohmann::ordered_json::array();
  for (const DataPreview& set : previews) {
    for (const std::string& line : preview_lines(set, *data.tokenizer)) found.lines.push_back(line);
    found.facts["data"].push_back(to_json(set));
    check_masks(set, plan, *data.tokenizer, found.problems);
    check_pairs(set, found);
  }
  ModelFindings models = inspect_models(plan, *data.tokenizer, extent_of(config, plan, data, train));
  found.refused = std::move(models.problems);
  found.lines.insert(found.lines.end(), models.lines.begin(), models.lines.end());
  add_memory(config, plan, placement, found);
  check_sampled(config, plan, *data.tokenizer, found.problems);
  check_schedule(config, plan, numbers, found.refused);
  if (const std::string problem = best_metric_problem(config, plan.measures()); !problem.empty())
    found.refused.push_back(problem);
  return found;
}

Findings check(Config config, WeightFiles weights) {
  Findings found;
  std::vector<std::string> problems;
  const flow::Registry registry = module_registry();
  Plan plan;
  if (attempt(problems, [&] { plan = complete_plan(config, registry); })) {
    found.config = resolved_text(config, plan);
    found.problems = missing_models(config);
    if (!found.problems.empty()) return found;  // all else would say the same again
    graph::Placement placement;
    RunData data;
    const bool read = attempt(problems, [&] {
      data = read_data(config, plan);
      settle_iterations(config, registry, data, plan);
    });
    const bool placed = attempt(problems, [&] { placement = make_placement(config, plan); });
    if (placed && read) attempt(problems, [&] { found = inspect(config, plan, placement, data); });
    if (weights == WeightFiles::kRead) check_weights(plan, problems);
    const RewardFindings rewards = check_rewards(plan, data, kCheckedRows);
    for (const std::string& text : rewards.raised) base::log_warning("{}", text);
    found.lines.insert(found.lines.end(), rewards.lines.begin(), rewards.lines.end());
    problems.insert(problems.end(), rewards.problems.begin(), rewards.problems.end());
  }
  found.config = plan.modules.empty() ? base::resolved_config(config) : resolved_text(config, plan);
  append_fresh(found.problems, found.refused);
  append_fresh(found.problems, problems);
  return found;
}

nlohmann::ordered_json to_json(const Config& config, const Findings& found) {
  nlohmann::ordered_json document = {{"config", base::to_json(config.section_value())},
                                     {"config_hash", base::config_hash(config)}};
  if (!found.facts.is_null()) document.update(found.facts);  // null where something could not be read
  document["notes"] = found.lines;
  document["problems"] = found.problems;
  return document;
}

void refuse(const std::vector<std::string>& problems) {
  if (!problems.empty()) throw base::InputError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace collimate::recipe
