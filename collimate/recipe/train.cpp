#include "collimate/recipe/train.h"

#include <algorithm>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/log.h"
#include "collimate/base/progress.h"
#include "collimate/base/span.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/carried_samples.h"
#include "collimate/recipe/check.h"
#include "collimate/recipe/check_rewards.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/plugins.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/profile.h"
#include "collimate/recipe/recorder.h"
#include "collimate/recipe/registry.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/run_files.h"
#include "collimate/recipe/summary.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;

TrainOutcome outcome_of(const nlohmann::ordered_json& summary) {
  return {.first_evaluation = summary.at("first_evaluation"),
          .last_evaluation = summary.at("last_evaluation"),
          .summary = summary,
          .diverged = summary.value("diverged", ""),
          .iterations = summary.at("iterations").get<int64_t>(),
          .seconds = summary.at("seconds").get<double>()};
}

// Adds the warnings from a trial of the rewards on the data's first rows. Throws InputError where they cannot judge
// these. With a journal to replay no reward is asked.
void add_trial(const Plan& plan, const RunData& data, const TrainCall& call, Findings& found) {
  if (!call.replay.empty()) return;
  const RewardFindings rewards = check_rewards(plan, data, kTriedRows);
  refuse_rewards(rewards);
  for (const std::string& line : rewards.lines)
    if (line.starts_with("warning: ")) found.lines.push_back(line);
}

// Returns whether a change (RunDirectory::changed) is of how long the run is.
bool is_of_length(const std::string& change) {
  return change.starts_with("run.iterations:") || change.starts_with("run.epochs:");
}

// Returns how often a line of progress stays, in iterations.
int64_t lines_every(const Config& config) {
  constexpr int64_t kLines = 20;  // of a run, by default
  if (config.log.every > 0) return config.log.every;
  return (config.run.iterations + kLines - 1) / kLines;
}

// Is one run, from claiming its directory to its summary.
class Run {
 public:
  Run(const Config& config, const TrainCall& call)
      : config_(config),
        call_(call),
        reparse_(base::reparse_every_run()),
        registry_(module_registry()),
        plan_(complete_plan(config_, registry_)),
        data_(read_data(config_, plan_)),
        placement_(place()),
        found_(accept()),
        directory_(config_, plan_, data_, call),
        recorder_(config_, plan_, data_, directory_),
        progress_(config_.recipe, config_.run.iterations, directory_.completed(),
                  call.shows_progress ? lines_every(config_) : 0) {
    recorder_.on_record = [this](const base::MetricsRecord& record) {
      const GoesOn goes_on = call_.on_metrics ? call_.on_metrics(record) : GoesOn::kYes;
      if (goes_on == GoesOn::kYes) return;
      caller_ends_ = goes_on == GoesOn::kEnds;
      stop_.request();
    };
  }

  TrainOutcome run() {
    const auto recorded = directory_.summary();
    if (directory_.ended()) {
      note(fmt::format("nothing is left to do: {} has ended after {}", call_.output,
                       counted(directory_.completed(), "iteration")));
      return outcome_of(*recorded);
    }
    const base::LogFile log(directory_.log());
    try {
      prepare();
      carry_out();
    } catch (const std::exception& error) {
      base::log().record(fmt::format("stopped: {}", error.what()));
      try_to_write_profile();
      try_to_say_why(error);
      throw;
    }
    recorder_.finish();
    if (const std::string how = recorder_.watch().diverged(); !how.empty())
      base::log().record("the run has diverged: " + how);
    write_profile();
    if (recorded) return exported_anew(*recorded);
    host::write_file_atomically(directory_.path() / "trace.json", spans_.chrome_trace());
    const nlohmann::ordered_json told = run_summary(so_far());
    host::write_file_atomically(directory_.path() / kSummaryFile, told.dump(2) + "\n");
    return outcome_of(told);
  }

  // Returns what a person should know before the run starts: batch arithmetic, data shapes, and what would train wrong.
  std::vector<std::string> describe() const {
    std::vector<std::string> lines = found_.lines;
    for (const std::string& problem : found_.problems) lines.push_back("warning: " + problem);
    if (!directory_.removed().empty()) lines.push_back(directory_.removed());
    if (!directory_.checkpoint().empty())
      lines.push_back(fmt::format("resume: from iteration {} ({})", directory_.completed(), directory_.checkpoint()));
    for (const std::string& change : directory_.changed()) lines.push_back("changed: " + change);
    if (std::ranges::any_of(directory_.changed(), is_of_length) && config_.train.lr_schedule != std::string("constant"))
      lines.push_back(
          fmt::format("warning: the {} learning rate now ends at update {}: it goes on with other values than "
                      "the shorter or longer run would have had",
                      config_.train.lr_schedule.get(), total_updates(config_, plan_)));
    if (directory_.dropped_lines() > 0)
      lines.push_back(
          fmt::format("there is no checkpoint: the run begins again, and {} earlier lines of metrics.jsonl are removed",
                      directory_.dropped_lines()));
    return lines;
  }

 private:
  graph::Placement place() {
    settle_iterations(config_, registry_, data_, plan_);
    return make_placement(config_, plan_);
  }

  std::optional<CarriedSamples> carried_samples() const {
    if (!plan_.draws_in_rounds) return std::nullopt;
    return CarriedSamples(config_.rollout.round_min_samples, [this](int64_t example) {
      return data_.rows(example, plan_.group_size, 0, plan_.group_size);
    });
  }

  // Returns what check says of the run. Throws InputError for problems with which no run begins.
  Findings accept() const {
    Findings found = inspect(config_, plan_, placement_, data_);
    refuse(found.refused);
    add_trial(plan_, data_, call_, found);
    return found;
  }

  void note(const std::string& line) const {
    base::log().record(line);
    if (call_.note) call_.note(line);
  }

  void prepare() {
    fs::remove(directory_.path() / kStoppedFile);
    for (const std::string& line : describe()) note(line);
    const std::vector<std::string> workers = worker_names(plan_.graph, placement_);
    for (size_t i = 0; i < workers.size(); ++i) spans_.name_worker(static_cast<int>(i), workers[i]);
    host::write_file_atomically(directory_.path() / "plan.yaml", graph::yaml_text(placement_));
  }

  // Runs the graph's iterations until they are done, patience runs out or the caller ends them. Throws StoppedError
  // when a signal or the caller asked to stop.
  void carry_out() {
    const flow::RunOptions options = run_options();
    if (reparse_) note("reparse: every worker is built from reparsed text, every message is reparsed");
    try {
      flow::run(plan_.graph, placement_, registry_, options);
    } catch (const base::InputError&) {
      directory_.give_up();
      throw;
    } catch (const base::StoppedError&) {
      recorder_.finish();
      if (signalled_ || !(caller_ends_ || recorder_.out_of_patience())) throw;
      note(caller_ends_
               ? "stopped: the caller asked for it"
               : fmt::format("stopped: val/loss has not fallen for {} evaluations", config_.run.patience.get()));
    }
  }

  // Writes the profile after an error. That error stays the one that is told.
  void try_to_write_profile() const {
    try {
      write_profile();
    } catch (const std::exception& error) {
      base::log_warning("the profile was not written: {}", error.what());
    }
  }

  // Leaves for the report why the run is not going on. Wrong input leaves nothing: its message is of the config and not
  // of the run.
  void try_to_say_why(const std::exception& error) const {
    const auto* known = dynamic_cast<const base::Error*>(&error);
    const int exit_code = known == nullptr ? 1 : known->exit_code();
    if (exit_code == base::InputError("").exit_code()) return;
    try {
      const nlohmann::ordered_json told = why_stopped(so_far(), error.what(), exit_code);
      host::write_file_atomically(directory_.path() / kStoppedFile, told.dump(2) + "\n");
    } catch (const std::exception& failure) {
      base::log_warning("{} was not written: {}", kStoppedFile, failure.what());
    }
  }

  RunSoFar so_far() const { return {config_, plan_, data_, recorder_, directory_.completed(), end_, start_bytes_}; }

  void write_profile() const {
    if (profile_.empty()) return;
    const std::filesystem::path path = directory_.path() / "profile.txt";
    host::write_file_atomically(path, profile_.table());
    note(fmt::format("profile ({}):\n{}", path.string(), profile_.table()));
  }

  flow::RunOptions run_options() {
    flow::RunOptions options;
    options.schedule = {
        .iterations = config_.run.iterations,
        .rows = plan_.rows_per_iteration,
        .group_size = plan_.group_size,
        .save_every = config_.run.save_every > 0 ? config_.run.save_every.get() : config_.run.iterations.get(),
        .exact_versions = placement_.staleness > 0,
        .replace_limit = config_.rollout.replace_limit,
        .may_be_empty = plan_.draws_in_rounds,
        .epoch_iterations = plan_.epoch_iterations,
        .last_rows = plan_.last_rows};
    options.seed = static_cast<uint64_t>(config_.run.seed.get());
    options.config = base::to_json(config_.section_value());
    options.modules = plan_.modules;
    options.next_rows = [this](int64_t iteration, int64_t first, int64_t count) {
      return carried_ ? carried_->rows(count) : data_.rows(iteration, plan_.rows_per_iteration, first, count);
    };
    options.on_iteration = [this](const flow::IterationResult& result) {
      if (carried_) carried_->take(result.batches.at(generating_node(plan_.graph)));
      recorder_.iteration(result);
      if (config_.log.profile) profile_.end_iteration(result.iteration, result.seconds);
      const int64_t done = result.iteration + 1;
      base::log().record(fmt::format("iteration {}: {}", done, recorder_.details()));
      progress_.update(done, recorder_.details());
    };
    if (!plan_.evaluations.empty()) add_evaluations(options);
    add_files(options);
    add_workers(options);
    options.on_end = [this](const flow::RunEnd& end) { end_ = end; };
    options.state = {&recorder_};
    if (carried_) options.state.push_back(&*carried_);
    add_stops(options);
    options.spans = &spans_;
    if (config_.log.profile) options.on_call = [this](const flow::CallTimes& times) { profile_.add(times); };
    return options;
  }

  void add_stops(flow::RunOptions& options) {
    options.stop = &stop_;
    options.on_poll = [this] {
      if (call_.on_poll) call_.on_poll();
      pass_signal_on();
    };
  }

  void pass_signal_on() {
    if (call_.stop == nullptr || !call_.stop->requested() || signalled_) return;
    signalled_ = true;
    note("stopping after this iteration; press Ctrl-C again to stop at once");
    stop_.request(call_.stop->signal());
  }

  // Says where the run's state is kept and taken from.
  void add_files(flow::RunOptions& options) {
    options.directory = directory_.path();
    options.keep = recorder_.retention();
    options.exports = {{plan_.trained, directory_.model_to_write()}};
    options.resume = directory_.checkpoint();
    // Patience may have run out before the process that saved the checkpoint ended. Where the caller had ended the run,
    // nothing but its model is written.
    options.on_resumed = [this] {
      if (directory_.completed() == config_.run.iterations) return;
      caller_ends_ = directory_.summary().has_value() && !recorder_.out_of_patience();
      if (caller_ends_ || recorder_.out_of_patience()) stop_.request();
    };
    options.replay = call_.replay;
  }

  void add_workers(flow::RunOptions& options) const {
    if (config_.cluster == std::string("local-processes")) options.transport = flow::Transport::kProcesses;
    options.worker_command = worker_command();
    options.deadline_seconds = config_.run.deadline_seconds;
    options.threads_per_worker = threads_of(config_, placement_);
    options.memory_budget_bytes = config_.run.memory_budget * (int64_t{1} << 20);
    options.swap_directory = config_.run.swap_directory;
  }

  // Workers that are processes load the config's plugins too, with the content that this process has loaded.
  std::vector<std::string> worker_command() const {
    std::vector<std::string> command = call_.worker_command;
    if (config_.plugins->empty()) return command;
    if (command.empty()) command = {fs::read_symlink("/proc/self/exe").string(), "worker"};
    for (const std::string& plugin : config_.plugins)
      command.insert(command.end(), {"--plugin", pinned_plugin(plugin)});
    return command;
  }

  void add_evaluations(flow::RunOptions& options) {
    options.schedule.evaluate_first = true;
    const bool often = plan_.measures() && config_.run.evaluate_every > 0;
    options.schedule.evaluate_every = often ? config_.run.evaluate_every.get() : config_.run.iterations.get();
    for (size_t i = 0; i < plan_.evaluations.size(); ++i) {
      const EvaluationPlan& plan = plan_.evaluations[i];
      const HeldOutRows& held = data_.held_out.at(i);
      options.evaluations.push_back(
          {.name = plan.name,
           .graph = plan.graph,
           .rows = held.rows.rows(),
           .group_size = held.group_size,
           .next_rows = [&rows = held.rows](int64_t, int64_t first,
                                            int64_t count) { return rows.slice(first, first + count); },
           .on_result = [this, &plan](const flow::IterationResult& result) { take_evaluation(plan, result); }});
    }
  }

  void take_evaluation(const EvaluationPlan& plan, const flow::IterationResult& result) {
    if (!recorder_.evaluation(plan, result)) return;
    std::vector<std::string> values;
    for (const auto& [name, value] : recorder_.last_evaluation().items())
      values.push_back(fmt::format("{} {:.4g}", name, value.get<double>()));
    if (!values.empty())
      note(fmt::format("iteration {}: {} ({})", result.iteration + 1, fmt::join(values, ", "),
                       text_of(count_held_out(plan_, data_))));
    if (recorder_.out_of_patience()) stop_.request();
  }

  // Ends the call of a run that had ended and lacked its model, or wants that of another form or checkpoint.
  TrainOutcome exported_anew(nlohmann::ordered_json summary) const {
    const nlohmann::ordered_json before = summary;
    summary.update(exported_model(so_far()));
    if (summary != before) host::write_file_atomically(directory_.path() / kSummaryFile, summary.dump(2) + "\n");
    directory_.keep_export();
    return outcome_of(summary);
  }

  Config config_;
  const TrainCall& call_;
  const bool reparse_;
  flow::Registry registry_;
  Plan plan_;
  RunData data_;
  graph::Placement placement_;
  const Findings found_;
  std::optional<CarriedSamples> carried_ = carried_samples();
  RunDirectory directory_;
  Recorder recorder_;
  base::SpanRecorder spans_;
  Profile profile_;  // empty without log.profile
  base::Progress progress_;
  base::StopFlag stop_;  // requested by a signal, by the caller or out of patience
  bool signalled_ = false;
  bool caller_ends_ = false;  // by what on_metrics returned
  const int64_t start_bytes_ = host::resident_bytes();
  flow::RunEnd end_;
};

}  // namespace

TrainOutcome train(const Config& config, const TrainCall& call) { return Run(config, call).run(); }

}  // namespace collimate::recipe
