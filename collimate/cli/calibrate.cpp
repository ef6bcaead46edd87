#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/fields.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/calibrate_fit.h"
#include "collimate/cli/calibrate_runs.h"
#include "collimate/cli/shell_word.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/cpu.h"
#include "collimate/plan/inputs/machine.h"
#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::cli {
namespace {

namespace plan_ = collimate::plan;

// A Line is one line of the table: a function of a run, or its whole iteration.
struct Line {
  std::string run, function;
  double rows, tokens, measured_seconds, fitted_seconds;
  double error() const { return measured_seconds > 0 ? fitted_seconds / measured_seconds - 1 : 0; }

  COLLIMATE_FIELDS(run, function, rows, tokens, measured_seconds, fitted_seconds)
};

std::vector<Line> lines_of(const std::vector<CalibrationRun>& runs, const Measured& measured,
                           const plan_::Calibration& fitted) {
  std::vector<Line> lines;
  for (const CalibrationRun& run : runs) {
    plan_::Request request = run.asked.request;
    const double rows = request.load.rows, tokens = request.load.tokens();
    for (size_t i = 0; i < measured.observations.size(); ++i) {
      const plan_::Observation& o = measured.observations[i];
      if (o.run == run.name) lines.push_back({o.run, o.function, rows, tokens, o.seconds, fitted.fitted_seconds[i]});
    }
    for (const plan_::HostObservation& o : measured.hosts)
      if (o.run == run.name)
        lines.push_back({o.run, o.function, rows, tokens, o.seconds, rows * fitted.constants.host_row_seconds});
    request.constants = fitted.constants;
    lines.push_back({run.name, "iteration", rows, tokens, run.iteration_seconds,
                     plan_::simulate_plan(request, flat_plan(request)).period_seconds});
  }
  return lines;
}

std::vector<std::string> table_of(const std::vector<Line>& lines) {
  std::vector<std::string> table = {fmt::format("{:22} {:24} {:>7} {:>9} {:>11} {:>9} {:>7}", "run", "function", "rows",
                                                "tokens", "measured s", "fitted s", "error")};
  for (const Line& line : lines)
    table.push_back(fmt::format("{:22} {:24} {:>7.0f} {:>9.0f} {:>11.4f} {:>9.4f} {:>+6.0f}%", line.run, line.function,
                                line.rows, line.tokens, line.measured_seconds, line.fitted_seconds,
                                100 * line.error()));
  return table;
}

std::string today() {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

std::string sets_text(const CalibrateOptions& options) {
  std::string text;
  for (const std::string& set : options.sets) text += " --set " + shell_word(set);
  return text;
}

std::vector<std::string> comments_of(const CalibrateOptions& options, const std::vector<std::string>& table) {
  std::vector<std::string> comments = {
      fmt::format("collimate calibrate {} --devices {} --iterations {}{}", shell_word(options.config), options.devices,
                  options.iterations, sets_text(options)),
      fmt::format("on {}, {}; one thread a device", host::cpu_model(), today()),
      fmt::format("medians of {} iterations of each run; links between devices are not measured, but taken from the "
                  "device table",
                  options.iterations - 1),
      ""};
  comments.insert(comments.end(), table.begin(), table.end());
  return comments;
}

nlohmann::ordered_json document_of(const plan_::Machine& machine, const std::vector<Line>& lines,
                                   const std::string& output) {
  nlohmann::ordered_json document = {{"output", output},
                                     {"processor", host::cpu_model()},
                                     {"prompt", machine.prompt},
                                     {"completion", machine.completion}};
  document["constants"] = nlohmann::ordered_json::object();
  for (const auto& [info, value] : machine.constants) document["constants"][info->name] = value;
  document["measurements"] = lines;
  return document;
}

void add_options(CLI::App& app, CalibrateOptions& options) {
  app.add_option("CONFIG", options.config, "the YAML file of a run")->required();
  app.add_option("--iterations", options.iterations, "iterations of each run; the first is not counted (6)")
      ->check(at_least(2));
  app.add_option("--devices", options.devices,
                 "CPU devices that work side by side, each with one thread and the rows of the config. Devices share "
                 "caches and memory: take as many as you will plan for (1)")
      ->check(at_least(1));
  app.add_option("--set", options.sets, "replace the value of one key of the config: a.b=value")->take_all();
}

}  // namespace

int calibrate(const Arguments& arguments) {
  CLI::App app{"fits the planner's constants to this machine by short runs of CONFIG.yaml", "calibrate"};
  CalibrateOptions options;
  std::string output = "machine.yaml";
  bool json = false;
  add_options(app, options);
  app.add_option("--output", output, "the file of constants to write (machine.yaml)");
  app.add_flag("--json", json, "print one JSON document");
  if (!parse(app, arguments)) return 0;
  check_outputs({{"--output", output}}, {{"the config", options.config}});
  const std::vector<CalibrationRun> runs = run_for_calibration(options);
  const Measured measured = measured_in(runs);
  const plan_::Calibration fitted = fit(measured);
  const CalibrationRun& whole = runs.front();
  const plan_::Machine machine{found_in(fitted), whole.asked.lengths_key, whole.prompt, whole.completion};
  const std::vector<Line> lines = lines_of(runs, measured, fitted);
  const std::vector<std::string> table = table_of(lines);
  host::write_file_atomically(output, plan_::machine_text(machine, comments_of(options, table)));
  if (json) {
    print_json(document_of(machine, lines, output));
    return 0;
  }
  for (const std::string& line : table) fmt::print("{}\n", line);
  fmt::print("\n{}: for collimate plan {}{} --cluster {}xcpu --constants {}\n", output, shell_word(options.config),
             sets_text(options), options.devices, shell_word(output));
  return 0;
}

}  // namespace collimate::cli
