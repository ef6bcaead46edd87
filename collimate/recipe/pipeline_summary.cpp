#include "collimate/recipe/pipeline_summary.h"

#include <utility>

#include "collimate/host/file_io.h"
#include "collimate/recipe/run_files.h"

namespace collimate::recipe {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

// Returns what a step is and, where it has ended, what its own summary says.
ordered_json step_summary(const Pipeline& pipeline, const PipelineSplit& split, size_t step) {
  const fs::path run = pipeline.directory(step);
  const PipelineStep& named = pipeline_steps().at(step);
  ordered_json told = {{"folder", named.folder}, {"words", named.words}, {"rows", split.rows(step)}, {"done", false}};
  if (!fs::exists(run / kSummaryFile)) return told;
  const auto own = ordered_json::parse(host::read_file(run / kSummaryFile));
  told["done"] = true;
  for (const char* key : {"recipe", "iterations", "seconds", "first_evaluation", "last_evaluation", "final_metrics",
                          "diverged", "warnings", "model_hash", "config_hash"})
    if (own.contains(key)) told[key] = own.at(key);
  return told;
}

}  // namespace

ordered_json pipeline_summary(const Pipeline& pipeline, const PipelineSplit& split,
                              const std::function<ordered_json(const fs::path&)>& changes) {
  ordered_json steps = ordered_json::array();
  double seconds = 0;
  bool all_done = true;
  for (size_t step = 0; step < kPipelineSteps; ++step) {
    ordered_json told = step_summary(pipeline, split, step);
    const bool done = told.at("done").get<bool>();
    if (done) {
      const fs::path run = pipeline.directory(step);
      told["changes"] = changes(run / kMetricsFile);
      told["model"] = pipeline.model(step);
      told["report"] = (run / kReportFile).string();
    }
    seconds += told.value("seconds", 0.0);
    all_done = all_done && done;
    steps.push_back(std::move(told));
  }
  const PipelineOptions& options = pipeline.options();
  return {{"pipeline", "sft, reward, ppo"},
          {"done", all_done},
          {"actor_model", options.actor_model.get()},
          {"reward_model", options.reward_model.get()},
          {"data_split", options.data_split.get()},
          {"seed", options.seed.get()},
          {"seconds", seconds},
          {"steps", std::move(steps)}};
}

}  // namespace collimate::recipe
