#include "collimate/cli/calibrate_runs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/metrics.h"
#include "collimate/cli/process.h"
#include "collimate/host/cpu.h"
#include "collimate/host/file_io.h"
#include "collimate/host/scratch_directory.h"
#include "collimate/plan/calibrate/observe.h"
#include "collimate/plan/inputs/median.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "collimate/recipe/train.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;
namespace plan_ = collimate::plan;
using Sets = std::vector<std::string>;

// A Page holds what calibration needs to know of the recipe.
struct Page {
  recipe::Config config;
  bool draws = false;  // whether it draws completions of prompts
  int64_t group_size = 1;
};

Page read_page(const CalibrateOptions& options) {
  Page page{recipe::load(options.config, options.sets)};
  recipe::Plan plan = recipe::complete_plan(page.config, recipe::module_registry());
  page.draws = plan.rows == rlhf::RowKind::kPrompt;
  page.group_size = plan.group_size;
  if (const std::string kind = recipe::make_placement(page.config, plan).kind; kind != "cpu")
    throw base::InputError(base::expectation("placement.devices.kind", "cpu, which is what calibrate measures", kind,
                                             "--set placement=flattening"));
  return page;
}

// Returns the config keys that make a run short and quiet and give all models all devices.
Sets common_sets(const CalibrateOptions& options) {
  Sets sets = options.sets;
  for (const char* set :
       {"placement=flattening", "data.eval=null", "data.val_size=0", "evaluation={}", "train.warmup_updates=0",
        "run.threads=1", "run.save_every=0", "run.evaluate_every=0", "run.patience=0", "run.samples_every=0",
        "log.names=verl", "log.tensorboard=false", "log.wandb=false", "log.profile=false"})
    sets.emplace_back(set);
  sets.push_back(fmt::format("devices={}", options.devices));
  sets.push_back(fmt::format("run.iterations={}", options.iterations));
  return sets;
}

// Returns the config keys that give each device `share` of the config's rows, without changing the number of updates.
Sets row_sets(const Page& page, int64_t devices, double share) {
  const auto part = [&](int64_t all, int64_t unit) {
    const auto units = static_cast<int64_t>(static_cast<double>(all * devices) * share) / unit;
    return std::max<int64_t>(1, units) * unit;
  };
  const int64_t update = page.config.train.samples_per_update;
  Sets sets;
  if (page.draws)
    sets.push_back(fmt::format("rollout.prompts_per_iteration={}", part(page.config.rollout.prompts_per_iteration, 1)));
  if (update > 0)
    sets.push_back(fmt::format("train.samples_per_update={}", part(update, page.draws ? 1 : page.group_size)));
  return sets;
}

std::vector<plan_::NodeSpan> read_trace(const fs::path& path, const graph::Graph& graph) {
  std::vector<plan_::NodeSpan> spans;
  const nlohmann::json trace = base::parse_json(host::read_file(path), path.string());
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const int node = event.at("ph") == "X" ? graph.node_index(event.at("name").get<std::string>()) : -1;
    if (node < 0) continue;
    const double begin = event.at("ts").get<double>() / 1e6;
    spans.push_back(
        {node, event.at("args").at("iteration").get<int64_t>(), begin, begin + event.at("dur").get<double>() / 1e6});
  }
  return spans;
}

// Returns the median over the iterations after the first.
double median_metric(const std::vector<base::MetricsRecord>& records, const std::string& name) {
  std::vector<double> values;
  for (const base::MetricsRecord& record : records)
    if (const double* value = record.find(name); value != nullptr && record.step > 1) values.push_back(*value);
  return plan_::median_of(values);
}

void read_realised_lengths(const Page& page, const std::vector<base::MetricsRecord>& records, double rows,
                           CalibrationRun& run) {
  const auto metric = [&](const char* name) { return median_metric(records, name); };
  if (page.draws) {
    run.longest = metric("response_length/max");
    run.prompt = plan_::mean_text(metric("prompt_length/mean"));
    run.completion =
        plan_::lengths_text(metric("response_length/mean"), run.longest, metric("response_length/clip_ratio"), rows);
    return;
  }
  const double trained = rows * static_cast<double>(page.config.train.ppo_epochs.get());
  run.prompt = "1";
  run.completion = plan_::mean_text(metric("train/tokens") / trained - 1);
}

class Calibrator {
 public:
  explicit Calibrator(const CalibrateOptions& options) : options_(options), page_(read_page(options)) {}

  std::vector<CalibrationRun> runs() {
    const Sets all = row_sets(page_, options_.devices, 1), half = row_sets(page_, options_.devices, 0.5);
    std::vector<CalibrationRun> made = {run("all rows", all)};
    if (half != all) made.push_back(run("half of the rows", half));
    if (page_.draws && made[0].longest >= 2) {
      Sets shorter = all;
      shorter.push_back(fmt::format("rollout.completion_tokens={}", static_cast<int64_t>(made[0].longest / 2)));
      made.push_back(run("half of the completion", shorter));
    }
    return made;
  }

 private:
  CalibrationRun run(const std::string& name, const Sets& more) {
    Sets sets = common_sets(options_);
    sets.insert(sets.end(), more.begin(), more.end());
    const fs::path directory = scratch_.path() / "run";
    recipe::TrainCall call;
    call.output = directory.string();
    call.stop = &stop_on_signals();
    call.shows_progress = !options_.quiet;
    call.note = [this](const std::string& line) {
      if (line.starts_with("warning") && !options_.quiet) std::fprintf(stderr, "%s\n", line.c_str());
    };
    if (!options_.quiet)
      std::fprintf(stderr, "calibrate: %s, %d iterations\n", name.c_str(), static_cast<int>(options_.iterations));
    recipe::train(recipe::load(options_.config, sets), call);

    CalibrationRun made;
    made.name = name;
    const std::vector<base::MetricsRecord> records = base::read_metrics(directory / "metrics.jsonl");
    PlanOptions asked;
    asked.config = options_.config;
    asked.sets = sets;
    asked.cluster = fmt::format("1x{}xcpu", options_.devices);
    read_realised_lengths(page_, records, plan_request(asked).request.load.rows, made);
    asked.prompt = made.prompt;
    asked.completion = made.completion;
    made.asked = plan_request(asked);
    made.iteration_seconds = median_metric(records, "timing_s/step");
    made.seconds =
        plan_::node_seconds(made.asked.request.graph, read_trace(directory / "trace.json", made.asked.request.graph));
    fs::remove_all(directory);
    return made;
  }

  const CalibrateOptions& options_;
  const Page page_;
  const host::ScratchDirectory scratch_{"calibrate"};
};

}  // namespace

std::vector<CalibrationRun> run_for_calibration(const CalibrateOptions& options) {
  if (options.devices > host::core_count())
    throw base::InputError(base::expectation("--devices",
                                             fmt::format("at most the {} cores of this machine", host::core_count()),
                                             std::to_string(options.devices)));
  return Calibrator(options).runs();
}

}  // namespace collimate::cli
