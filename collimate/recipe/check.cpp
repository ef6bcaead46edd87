#include "collimate/recipe/check.h"

#include <algorithm>
#include <set>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/model/safetensors.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/check_rewards.h"
#include "collimate/recipe/model_files.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/preview.h"
#include "collimate/shape/model_shape.h"

namespace collimate::recipe {
namespace {

using base::expectation;

// Runs `step`; wrong input becomes a problem. False when it did.
template <class Step>
bool attempt(std::vector<std::string>& problems, const Step& step) {
  try {
    step();
    return true;
  } catch (const base::Error& error) {
    problems.emplace_back(error.what());
  } catch (const std::exception& error) {
    problems.push_back(fmt::format("[check] {}", error.what()));
  }
  return false;
}

void check_models(const Plan& plan, int64_t longest_row, int32_t largest_id, std::vector<std::string>& problems) {
  for (const auto& [directory, reads] : model_directories(plan)) {
    attempt(problems, [&, path = directory] {
      const shape::ModelShape shape = shape::read_model_shape(path);
      if (longest_row > shape.max_positions)
        problems.push_back(expectation(
            "model " + path, fmt::format("rows of at most its {} positions", shape.max_positions),
            fmt::format("{} tokens", longest_row), "shorter prompts or rows, or a smaller rollout.completion_tokens"));
      if (largest_id >= shape.vocabulary)
        problems.push_back(expectation("model " + path,
                                       fmt::format("token ids below its vocabulary of {}", shape.vocabulary),
                                       std::to_string(largest_id), "the tokenizer that belongs to the model"));
    });
  }
}

void check_bias(const std::string& section, const generate::SamplingOptions& sampling, const text::Tokenizer& tokenizer,
                std::vector<std::string>& problems) {
  const generate::LogitBias bias = generate::parse_logit_bias(sampling.logit_bias).value();
  if (bias.empty() || bias.rbegin()->first < tokenizer.vocab_size()) return;
  problems.push_back(expectation(section + ".logit_bias",
                                 fmt::format("token ids below the tokenizer's {}", tokenizer.vocab_size()),
                                 std::to_string(bias.rbegin()->first)));
}

void check_weights(const Plan& plan, std::vector<std::string>& problems) {
  for (const auto& [directory, reads] : model_directories(plan))
    if (reads) attempt(problems, [path = directory] { model::TensorDirectory{path}; });
}

void check_schedule(const Config& config, const BatchArithmetic& n, std::vector<std::string>& problems) {
  const int64_t warmup = config.train.warmup_updates;
  if (warmup >= n.total_updates && warmup > 0)
    problems.push_back(expectation("train.warmup_updates",
                                   fmt::format("fewer than the run's {} updates", n.total_updates),
                                   std::to_string(warmup), "a shorter warm-up, or more run.iterations"));
  const bool groups = config.recipe == std::string("grpo");
  if (groups && n.group_size < 2)
    problems.push_back(expectation("rollout.samples_per_prompt", "at least 2: advantages compare a prompt's samples",
                                   std::to_string(n.group_size)));
}

std::string first_rows(const std::vector<int64_t>& rows) {
  std::vector<int64_t> shown;
  for (size_t i = 0; i < std::min<size_t>(3, rows.size()); ++i) shown.push_back(rows[i] + 1);
  return fmt::format("{}{}", fmt::join(shown, ", "), rows.size() > 3 ? ", …" : "");
}

void check_masks(const DataPreview& data, const std::string& recipe, const text::Tokenizer& tokenizer,
                 std::vector<std::string>& problems) {
  if (!data.masked.empty())
    problems.push_back(
        expectation(data.key, "a trained token in every row",
                    fmt::format("none in {} of {} (row {})", data.masked.size(), data.rows, first_rows(data.masked))));
  const bool generates = recipe != "reward";  // a reward model scores the last token whatever it is
  if (generates && !data.unended.empty())
    problems.push_back(expectation(
        data.key, fmt::format("rows whose last trained token ends a completion ({})", stop_text(tokenizer)),
        fmt::format("{} of {} that do not (row {}): the model would not learn to stop", data.unended.size(), data.rows,
                    first_rows(data.unended)),
        "a tokenizer with an EOS token, or a chat template whose end of turn generation_config.json names"));
}

std::string placement_line(const Config& config, const Plan& plan, const graph::Placement& placement) {
  const int threads = threads_of(config, placement);
  return fmt::format("placement: {} device{}, {} thread{} each; graph of {} nodes on {} workers", placement.devices,
                     placement.devices == 1 ? "" : "s", threads, threads == 1 ? "" : "s", plan.graph.nodes.size(),
                     graph::worker_count(plan.graph, placement));
}

}  // namespace

Findings inspect(const Config& config, const Plan& plan, const graph::Placement& placement, const RunData& data) {
  Findings found;
  found.lines = data.notes;
  std::vector<DataPreview> previews = {preview("data.train", *data.train, plan.rows, *data.tokenizer)};
  if (data.eval) previews.push_back(preview("data.eval", *data.eval, plan.evaluation->rows, *data.tokenizer));
  const DataPreview& train = previews.front();
  const BatchArithmetic numbers =
      batch_arithmetic(config, plan, data.train->examples(), train.prompt.longest, train.row.longest);
  for (const std::string& line : arithmetic_lines(numbers, config)) found.lines.push_back(line);
  found.lines.push_back(placement_line(config, plan, placement));
  found.facts["batch"] = to_json(numbers);
  found.facts["data"] = nlohmann::ordered_json::array();
  int64_t longest = 0;
  int32_t largest_id = 0;
  for (const DataPreview& set : previews) {
    for (const std::string& line : preview_lines(set, *data.tokenizer)) found.lines.push_back(line);
    found.facts["data"].push_back(to_json(set));
    check_masks(set, config.recipe, *data.tokenizer, found.problems);
    const int64_t completion = set.kind == rlhf::RowKind::kPrompt ? config.rollout.completion_tokens.get() : 0;
    longest = std::max(longest, set.row.longest + completion);
    largest_id = std::max(largest_id, set.largest_id);
  }
  check_models(plan, longest, largest_id, found.problems);
  check_bias("rollout", config.rollout, *data.tokenizer, found.problems);
  check_bias("evaluation", config.evaluation, *data.tokenizer, found.problems);
  check_schedule(config, numbers, found.problems);
  return found;
}

Findings check(const Config& config) {
  Findings found;
  std::vector<std::string> problems;
  const flow::Registry registry = module_registry();
  Plan plan;
  if (attempt(problems, [&] { plan = complete_plan(config, registry); })) {
    graph::Placement placement;
    RunData data;
    const bool placed = attempt(problems, [&] { placement = make_placement(config, plan.graph); });
    const bool read = attempt(problems, [&] { data = read_data(config, plan); });
    if (placed && read) attempt(problems, [&] { found = inspect(config, plan, placement, data); });
    check_weights(plan, problems);
    check_rewards(plan, data, found.lines, problems);
  }
  found.config = plan.modules.empty() ? base::resolved_config(config) : resolved_text(config, plan);
  found.problems.insert(found.problems.end(), problems.begin(), problems.end());
  return found;
}

void refuse(const Findings& findings) {
  if (!findings.problems.empty()) throw base::InputError(fmt::format("{}", fmt::join(findings.problems, "\n")));
}

}  // namespace collimate::recipe
