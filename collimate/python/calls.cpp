#include "collimate/python/calls.h"

#include <optional>

#include "collimate/base/config.h"
#include "collimate/base/config_node.h"
#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/base/log.h"
#include "collimate/cli/auto_placement.h"
#include "collimate/cli/reported_run.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/scratch_directory.h"
#include "collimate/python/process_scope.h"
#include "collimate/recipe/check.h"
#include "collimate/recipe/evaluation/of_models.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/train.h"
#include "collimate/rlhf/prompt/row_options.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::python {
namespace {

// The file of a config. Values given as JSON are written to a temporary file that exists as long as this, as the
// planner reads files.
class ConfigFile : private base::Immovable {
 public:
  explicit ConfigFile(const nlohmann::json& value) {
    if (value.is_string()) {
      path_ = value.get<std::string>();
      return;
    }
    path_ = (directory_.emplace("config").path() / "config.yaml").string();
    host::write_file_atomically(path_, value.dump(2) + "\n");
  }
  const std::string& path() const { return path_; }

 private:
  std::optional<host::ScratchDirectory> directory_;
  std::string path_;
};

// Returns the config with its placement chosen. `run` is the directory where a run may be whose placement counts; "":
// none.
recipe::Config loaded(const GivenConfig& given, const std::string& run) {
  recipe::Config config = given.value.is_string() ? recipe::load(given.value.get<std::string>(), given.sets)
                                                  : recipe::load_values(given.value, given.sets);
  const ConfigFile file(given.value);
  cli::choose_placement(config, file.path(), given.sets, run);
  return config;
}

// Throws InputError for functions of this process as rewards if workers run in processes of their own, which do not
// have them.
void refuse_processes(const recipe::Config& config, const GivenConfig& given) {
  if (given.rewards.empty() || config.cluster.get() != "local-processes") return;
  throw base::InputError(base::expectation("rewards", "rewards in files with cluster: local-processes",
                                           "the function " + given.rewards.front().name,
                                           "{python: FILE.py:FUNCTION}, or cluster: local"));
}

// Makes rewards in memory end, as a call that stops waits for the threads that run them.
void interrupt(const std::vector<CalledFunction>& rewards) {
  for (const CalledFunction& reward : rewards) reward.interrupt();
}

// Returns the argument of collimate.evaluate that stands for a key of `evaluation`.
std::string argument_name(const std::string& key) {
  if (key == "samples_per_prompt") return "n";
  return key == "reward" ? "rewards" : key;
}

}  // namespace

nlohmann::ordered_json train(const TrainRequest& request) {
  const ProcessScope process;
  const CalledRewards rewards(request.config.rewards);
  recipe::TrainCall call{.output = request.output, .resume = request.resume, .overwrite = request.overwrite};
  const recipe::Config config = loaded(request.config, recipe::run_to_resume(call));
  refuse_processes(config, request.config);
  SignalScope signals([&] { interrupt(request.config.rewards); });
  call.stop = &signals.stop();
  call.worker_command = request.worker_command;
  call.note = [](const std::string& line) { base::log().show(line); };
  call.on_metrics = [&](const base::MetricsRecord& record) { return request.on_metrics(base::to_json_line(record)); };
  call.on_poll = [&] { signals.throw_if_repeated(); };
  try {
    const recipe::TrainOutcome outcome = cli::train_and_report(config, call);
    if (!outcome.diverged.empty()) base::log_warning("the run has diverged: {}", outcome.diverged);
    return {{"iterations", outcome.iterations},
            {"seconds", outcome.seconds},
            {"first_evaluation", outcome.first_evaluation},
            {"last_evaluation", outcome.last_evaluation},
            {"summary", outcome.summary}};
  } catch (const base::StoppedError& error) {
    return {{"signal", signals.stop().signal()}, {"message", error.what()}};
  }
}

nlohmann::ordered_json check(const GivenConfig& given) {
  const ProcessScope process;
  const CalledRewards rewards(given.rewards);
  const recipe::Config config = loaded(given, "");
  refuse_processes(config, given);
  return recipe::to_json(config, recipe::check(config));
}

nlohmann::ordered_json evaluate(const EvaluateRequest& request) {
  const ProcessScope process;
  const CalledRewards rewards(request.rewards);
  const nlohmann::json& given = request.call;
  recipe::EvaluationCall call{.data = given.at("data"),
                              .section = given.at("section"),
                              .completion_tokens = given.at("max_tokens"),
                              .seed = given.at("seed"),
                              .compute = given.at("compute"),
                              .latent_cache = given.at("latent_cache"),
                              .chat_template = given.at("chat_template"),
                              .chat_template_kwargs = given.at("chat_template_kwargs"),
                              .names = {.of = argument_name, .between = "="}};
  rlhf::RowSection rows;
  base::apply({{"long_rows", given.at("long_rows")}, {"bad_rows", given.at("bad_rows")}}, "evaluate", rows);
  call.rows = rows.choices();
  SignalScope signals([&] { interrupt(request.rewards); });
  call.on_poll = [&] { signals.throw_if_asked("evaluate"); };
  if (!given.at("measure").is_null())
    call.measured = words_of(recipe::MeasureKind()).parse("measure", given.at("measure").get<std::string>());
  nlohmann::json& list = call.section["reward"];
  if (!list.is_null()) list = rlhf::resolved_rewards(base::from_json(list, "rewards"), "rewards");
  return unless_stopped(signals, [&] {
    const std::vector<recipe::ModelEvaluation> models = recipe::evaluate_each(request.models, call, request.download);
    return recipe::evaluation_document(call, models);
  });
}

}  // namespace collimate::python
