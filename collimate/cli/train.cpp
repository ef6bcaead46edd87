#include "collimate/recipe/train.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/metrics.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/auto_placement.h"
#include "collimate/cli/check.h"
#include "collimate/cli/process.h"
#include "collimate/cli/reported_run.h"
#include "collimate/cli/shell_word.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/chatlearn/chatlearn.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/plugins.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/run_files.h"
#include "collimate/report/change.h"
#include "collimate/report/heading.h"
#include "collimate/report/html.h"

namespace collimate::cli {

namespace {

constexpr double kRisenFar = 1.5;  // a loss above this times its first value has risen far
constexpr int kDiverged = 5;  // the exit code of a run that came to its end with a model that is worse than at first

std::vector<double> finite_values(const std::vector<base::MetricsRecord>& records, const std::string& name) {
  std::vector<double> values;
  for (const base::MetricsRecord& record : records)
    if (const double* value = record.find(name); value != nullptr && std::isfinite(*value)) values.push_back(*value);
  return values;
}

// Returns "reward 0.12 -> 0.61 (means of the first and the last 5 of 50 iterations)", or "" if the run has no such
// metric. For a loss that has risen far in between, its first and largest values are named, too.
std::string change_of(const std::vector<base::MetricsRecord>& records, const std::string& name,
                      const std::string& label) {
  const std::vector<double> values = finite_values(records, name);
  const std::optional<report::Change> change = report::change_over(values);
  if (!change) return "";
  const double most = *std::ranges::max_element(values);
  const bool rose = label == "loss" && values.front() > 0 && most > kRisenFar * values.front();
  const std::string way = rose ? fmt::format("{:.4g} at first, {:.4g} at most, ", values.front(), most) : "";
  return fmt::format("{} {}{:.4g} -> {:.4g} ({})\n", label, way, change->before, change->after, change->basis());
}

constexpr const char* kStillFalling =
    "hint: the loss was still falling at the end; more epochs, or a higher train.learning_rate, would lower it "
    "further\n";

constexpr const char* kNotRisen =
    "hint: the reward has not risen; a higher train.learning_rate, more iterations or easier prompts may help\n";

// Prints how the metrics changed, where model and report are, and a command to try the model.
void show_outcome(const recipe::Config& config, const recipe::TrainOutcome& outcome, const std::string& output) {
  fmt::print("{} in {}\n", recipe::counted(outcome.iterations, "iteration"), report::duration(outcome.seconds));
  std::vector<std::string> unreadable;  // ignored, because the report names these lines
  const std::string metrics = output + "/metrics.jsonl";
  std::vector<base::MetricsRecord> records;
  if (std::filesystem::exists(metrics)) records = base::read_metrics(metrics, &unreadable);
  const bool trl = config.log.names == std::string("trl");
  const char* mean_reward = trl ? "reward" : "critic/rewards/mean";
  std::string reward = change_of(records, mean_reward, "reward");
  const auto warnings = outcome.summary.value("warnings", nlohmann::ordered_json::array());
  const bool explained = std::ranges::any_of(warnings, [](const nlohmann::ordered_json& warning) {
    return warning.get<std::string>().find("iterations in a row") != std::string::npos;
  });
  if (!explained && report::has_not_risen(finite_values(records, mean_reward))) reward += kNotRisen;
  const char* loss = trl ? "loss" : "actor/loss";
  const bool falls = recipe::find_recipe(config.recipe).rows == rlhf::RowKind::kDemonstration &&
                     report::still_falls(finite_values(records, loss));
  fmt::print("{}", reward.empty() ? change_of(records, loss, "loss") + (falls ? kStillFalling : "") : reward);
  const auto finite = [](const nlohmann::ordered_json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
  };
  for (const auto& [name, last] : outcome.last_evaluation.items())
    if (const auto first = outcome.first_evaluation.find(name);
        first != outcome.first_evaluation.end() && finite(*first) && finite(last))
      fmt::print("held out: {} {:.4g} -> {:.4g}\n", name, first->get<double>(), last.get<double>());
  for (const auto& warning : warnings) fmt::print("warning: {}\n", warning.get<std::string>());
  const std::string command = report::trial_command(config.recipe, outcome.summary.value("generates", false), output);
  fmt::print("model: {}/model{}\nreport: {}/report.html\n", output, command.empty() ? "" : ", to try it: " + command,
             output);
}

struct TrainWords {
  std::string config;
  std::vector<std::string> sets;
  recipe::TrainCall call;
  bool dry_run = false, json = false;
};

bool read_arguments(const Arguments& arguments, TrainWords& words) {
  CLI::App app{"trains a model as CONFIG.yaml says", "train"};
  recipe::TrainCall& call = words.call;
  bool download = false, profile = false;
  app.add_option("CONFIG", words.config, "the YAML file of the run (collimate help KEY explains its keys)")->required();
  app.add_option("--set", words.sets, "replace the value of one key: a.b=value")->take_all();
  add_plugin_option(app);
  add_download_flag(app, download);
  app.add_option("--output", call.output, "the directory of the run; default: runs/<name of the config>");
  app.add_option("--resume", call.resume,
                 "auto continues the run in --output, never is an error where there is one; or the run or checkpoint "
                 "(DIR/checkpoints/step-N) to continue from");
  app.add_flag("--overwrite", call.overwrite,
               "remove the run that --output holds, its model too, and begin anew; files that no run writes stay");
  app.add_option("--replay", call.replay,
                 "the journal of a run with this config: rewards are taken from it, and no reward is called");
  app.add_flag("--profile", profile, "write where the time of the slowest iteration went, to profile.txt");
  app.add_flag("--dry-run", words.dry_run, "check everything and train nothing, as collimate check does");
  app.add_flag("--json", words.json, "print the summary of the run as one JSON document");
  if (!parse(app, arguments)) return false;
  if (download) words.sets.emplace_back("download=true");
  if (profile) words.sets.emplace_back("log.profile=true");
  if (call.output.empty()) call.output = "runs/" + std::filesystem::path(words.config).stem().string();
  call.command_for = [&words](const std::string& output) {
    std::string command = "collimate train " + shell_word(words.config);
    for (const std::string& set : words.sets) command += " --set " + shell_word(set);
    for (const std::string& plugin : recipe::added_plugins()) command += " --plugin " + shell_word(plugin);
    return command + " --output " + shell_word(output);
  };
  return true;
}

// Returns how many keys of a ChatLearn YAML have no meaning here.
int64_t without_meaning(const std::string& config, const std::vector<std::string>& sets) {
  return std::ranges::count_if(recipe::chatlearn_lines(config, sets),
                               [](const std::string& line) { return line.starts_with("warning: "); });
}

}  // namespace

int train(const Arguments& arguments) {
  TrainWords words;
  if (!read_arguments(arguments, words)) return 0;
  recipe::TrainCall& call = words.call;
  recipe::Config config = recipe::load(words.config, words.sets);
  choose_placement(config, words.config, words.sets, recipe::run_to_resume(call));
  if (words.dry_run) return show_check(config, words.json ? CheckForm::kJson : CheckForm::kShort);
  call.note = [](const std::string& line) { base::log().show(line); };
  if (const int64_t keys = without_meaning(words.config, words.sets); keys > 0)
    call.note(fmt::format("warning: {} of {} {} no meaning here: collimate check {} lists them",
                          recipe::counted(keys, "key"), words.config, keys == 1 ? "has" : "have",
                          shell_word(words.config)));
  call.stop = &stop_on_signals();
  const recipe::TrainOutcome outcome = train_and_report(config, call);
  if (words.json) {
    nlohmann::ordered_json document = outcome.summary;
    document["output"] = call.output;
    document["model"] = call.output + "/model";
    document["report"] = call.output + "/" + recipe::kReportFile;
    print_json(document);
  } else {
    show_outcome(config, outcome, call.output);
  }
  std::fflush(stdout);  // so that the error comes last
  if (!outcome.diverged.empty())
    throw base::Error(base::expectation("train", "a loss that falls", "a run that has diverged: " + outcome.diverged),
                      kDiverged);
  return 0;
}

}  // namespace collimate::cli
