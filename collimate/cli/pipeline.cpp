#include "collimate/recipe/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/auto_placement.h"
#include "collimate/cli/process.h"
#include "collimate/cli/reported_run.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/arithmetic.h"
#include "collimate/recipe/directory_lock.h"
#include "collimate/recipe/pipeline_summary.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/run_files.h"
#include "collimate/report/change.h"
#include "collimate/report/html.h"
#include "collimate/report/pipeline_page.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;

struct PipelineWords {
  std::string file, output;
  std::vector<std::string> sets;
  std::vector<int64_t> steps;
  bool dry_run = false, json = false;
};

// PipelineFlags are options that set a key of the pipeline's config.
struct PipelineFlags {
  std::string actor, reward, deployment, split;
  std::vector<std::string> data, sft_data;
  std::optional<int64_t> seed;
  bool download = false;

  // Returns the flags as values of --set. They go before those given by --set, which therefore win.
  std::vector<std::string> sets() const {
    std::vector<std::string> out;
    const auto add = [&](const char* key, const nlohmann::json& value) {
      out.push_back(fmt::format("{}={}", key, value.dump()));
    };
    if (!actor.empty()) add("actor_model", actor);
    if (!reward.empty()) add("reward_model", reward);
    if (!deployment.empty()) add("deployment_type", deployment);
    if (!split.empty()) add("data_split", split);
    if (!data.empty()) add("data", data);
    if (!sft_data.empty()) add("sft_data", sft_data);
    if (seed) add("seed", *seed);
    if (download) add("download", true);
    return out;
  }
};

void add_pipeline_options(CLI::App& app, PipelineWords& words, PipelineFlags& flags) {
  app.add_option("CONFIG", words.file,
                 "a YAML file with the keys actor_model, reward_model, data and so on, and in all, sft, reward and ppo "
                 "keys of the steps");
  app.add_option("--actor-model", flags.actor, "the model that SFT begins from, and that PPO goes on with");
  app.add_option("--reward-model", flags.reward,
                 "the model that the reward model begins from; it needs the actor's tokenizer");
  app.add_option("--data", flags.data, "files of pairs of a better and a worse answer, which the three steps share");
  app.add_option("--sft-data", flags.sft_data, "files of more rows for SFT alone, used whole");
  app.add_option("--data-split", flags.split, "shares of the rows for SFT, reward model and PPO; default: 2,4,4");
  name_choices(*app.add_option("--deployment-type", flags.deployment,
                               "single_gpu: one device; single_node: a device for each core of this machine"),
               {"single_gpu", "single_node"});
  app.add_option("--step", words.steps, "the steps to run, as 1 2 3; default: all. One that has ended is not run again")
      ->check(CLI::Range(int64_t{1}, int64_t{recipe::kPipelineSteps}));
  app.add_option("--seed", flags.seed, "seed of the split and of each step; default: 1234")->check(at_least(0));
  app.add_option("--set", words.sets, "replace the value of one key: ppo.train.learning_rate=1e-6, all.run.threads=1")
      ->take_all();
  add_download_flag(app, flags.download);
  app.add_option("--output,--out", words.output, "the directory of the pipeline; default: runs/pipeline");
  app.add_flag("--dry-run", words.dry_run, "make the split, check the three steps and train nothing");
  app.add_flag("--json", words.json, "print the summary of the pipeline as one JSON document");
}

std::string pipeline_footer() {
  return "Example:\n"
         "  collimate pipeline --actor-model MODEL --reward-model MODEL --data pairs.jsonl --output runs/chat\n"
         "writes runs/chat/1-sft, 2-reward and 3-ppo, each the directory of a run, report.html and summary.json. The "
         "same\ncommand continues a pipeline that was stopped.\n\n"
         "Keys of CONFIG, and of --set:\n" +
         base::config_help(recipe::PipelineOptions());
}

bool read_pipeline_words(const Arguments& arguments, PipelineWords& words) {
  CLI::App app{"trains a model by SFT, a reward model, and the first by PPO with the second, as DeepSpeed-Chat does",
               "pipeline"};
  PipelineFlags flags;
  add_pipeline_options(app, words, flags);
  app.footer(pipeline_footer());
  if (!parse(app, arguments)) return false;
  std::vector<std::string> sets = flags.sets();
  sets.insert(sets.end(), words.sets.begin(), words.sets.end());
  words.sets = std::move(sets);
  if (words.output.empty()) words.output = "runs/pipeline";
  if (words.steps.empty()) words.steps = {1, 2, 3};
  std::ranges::sort(words.steps);
  words.steps.erase(std::unique(words.steps.begin(), words.steps.end()), words.steps.end());
  return true;
}

// Returns whether a folder or file in a pipeline's directory is none that a pipeline writes there.
bool is_of_others(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename();
  if (name == recipe::kLockFile || name.starts_with("data") || name.starts_with("report.html") ||
      name.starts_with("summary.json"))
    return false;
  return std::ranges::none_of(recipe::pipeline_steps(),
                              [&](const recipe::PipelineStep& step) { return name.starts_with(step.folder); });
}

constexpr int kDivergedStep = 5;  // the exit code for a step that has diverged, the same as train's

// A PipelineRun is one call of the verb: it holds a pipeline with its split and runs the steps that are asked for.
class PipelineRun {
 public:
  explicit PipelineRun(const PipelineWords& words)
      : words_(words), pipeline_(words.file, words.sets, words.output), fresh_(!fs::exists(words.output)) {
    refuse_other_files();
    refuse_missing_steps();
    host::ensure_directory(words.output);
    lock_ = recipe::lock_directory(words.output);
    try {
      split_.emplace(pipeline_.split_request(), fs::path(words.output) / "data", !pipeline_.has_begun());
      check();
    } catch (const base::InputError&) {
      give_up();
      throw;
    }
    base::log().show(split_->text());
  }

  nlohmann::ordered_json run() {
    write_page();
    for (const int64_t number : words_.steps) {
      const auto step = static_cast<size_t>(number - 1);
      base::log().show(
          fmt::format("step {} of {}: {}", number, recipe::kPipelineSteps, recipe::pipeline_steps().at(step).words));
      try {
        run_step(step);
      } catch (const base::InputError&) {
        throw;
      } catch (const std::exception&) {
        write_page();
        throw;
      }
      write_page();
    }
    return summary();
  }

  // Prints what a check says about each step, and removes the directory if this call made it.
  void show_checks() const {
    for (const std::string& line : lines_) fmt::print("{}\n", line);
    give_up();
  }

 private:
  void refuse_other_files() const {
    const fs::path output = words_.output;
    std::error_code error;
    const fs::directory_iterator entries(output, error);
    const bool other = error ? fs::exists(output)
                             : !fs::exists(output / "data" / "split.json") &&
                                   std::any_of(fs::begin(entries), fs::end(entries), is_of_others);
    if (other)
      throw base::InputError(base::expectation("--output", "a new directory or one of this pipeline",
                                               output.string() + ", which holds other files", "another --output"));
  }

  // Throws InputError when step 3 is asked for but a model that it reads is neither there nor made by this call.
  void refuse_missing_steps() const {
    const std::set<int64_t> asked(words_.steps.begin(), words_.steps.end());
    if (!asked.contains(3)) return;
    for (const int64_t before : {1, 2}) {
      const std::string model = pipeline_.model(static_cast<size_t>(before - 1));
      if (!asked.contains(before) && !fs::exists(model))
        throw base::InputError(base::expectation("--step", fmt::format("step {} before step 3, or beside it", before),
                                                 fmt::format("no {}", model), fmt::format("--step {} 3", before)));
    }
  }

  // Checks every step, even those that are not asked for, so that one that would fail after hours is known now.
  void check() {
    std::vector<std::string> problems;
    for (size_t step = 0; step < recipe::kPipelineSteps; ++step) {
      const std::string name = recipe::pipeline_steps().at(step).folder;
      const recipe::Findings found = pipeline_.check(step);
      for (const std::string& line : found.lines) lines_.push_back(fmt::format("{}: {}", name, line));
      problems.insert(problems.end(), found.problems.begin(), found.problems.end());
    }
    recipe::refuse(problems);
  }

  // Removes the directory if this call made it: after wrong input, or if nothing is trained.
  void give_up() const {
    std::error_code ignored;
    if (fresh_) fs::remove_all(words_.output, ignored);
  }

  void run_step(size_t step) {
    const std::string file = pipeline_.directory(step) + ".yaml";
    host::write_file_atomically(file, pipeline_.yaml(step));
    recipe::Config config = pipeline_.config(step);
    recipe::TrainCall call;
    call.output = pipeline_.directory(step);
    call.note = [](const std::string& line) { base::log().show(line); };
    call.stop = &stop_on_signals();
    choose_placement(config, file, {}, recipe::run_to_resume(call));
    const recipe::TrainOutcome outcome = train_and_report(config, call);
    if (!outcome.diverged.empty())
      throw base::Error(
          base::expectation(recipe::pipeline_steps().at(step).folder, "a loss that falls",
                            "a run that has diverged: " + outcome.diverged,
                            "a lower train.learning_rate in another --output, or --step to go on without it"),
          kDivergedStep);
  }

  nlohmann::ordered_json summary() const { return recipe::pipeline_summary(pipeline_, *split_, report::changes_in); }

  void write_page() const {
    const fs::path output = words_.output;
    host::write_file_atomically(output / recipe::kSummaryFile, summary().dump(2) + "\n");
    std::vector<std::string> unreadable;
    host::write_file_atomically(output / recipe::kReportFile, report::render_pipeline(output, &unreadable));
    for (const std::string& problem : unreadable) base::log_warning("{}", problem);
  }

  const PipelineWords& words_;
  const recipe::Pipeline pipeline_;
  const bool fresh_;
  host::FileDescriptor lock_;  // of the whole directory; the run of a step also locks its own
  std::optional<recipe::PipelineSplit> split_;
  std::vector<std::string> lines_;
};

void show_steps(const nlohmann::ordered_json& summary, const std::string& output) {
  for (const auto& step : summary.at("steps")) {
    if (!step.at("done").get<bool>()) continue;
    fmt::print("{}: {} in {}", step.at("folder").get<std::string>(),
               recipe::counted(step.at("iterations").get<int64_t>(), "iteration"),
               report::duration(step.at("seconds").get<double>()));
    for (const auto& [name, last] : step.at("last_evaluation").items())
      if (const auto first = step.at("first_evaluation").find(name);
          first != step.at("first_evaluation").end() && first->is_number() && last.is_number())
        fmt::print("; {} {:.4g} -> {:.4g}", name, first->get<double>(), last.get<double>());
    if (const auto kl = step.at("changes").find("actor/reward_kl_penalty"); kl != step.at("changes").end())
      fmt::print("; KL per token {:.4g} -> {:.4g}", kl->at("before").get<double>(), kl->at("after").get<double>());
    fmt::print("\n");
  }
  fmt::print("report: {}/{}\n", output, recipe::kReportFile);
}

}  // namespace

int pipeline(const Arguments& arguments) {
  PipelineWords words;
  if (!read_pipeline_words(arguments, words)) return 0;
  PipelineRun run(words);
  if (words.dry_run) {
    run.show_checks();
    return 0;
  }
  nlohmann::ordered_json summary = run.run();
  if (words.json) {
    summary["output"] = words.output;
    summary["report"] = words.output + "/" + recipe::kReportFile;
    print_json(summary);
  } else {
    show_steps(summary, words.output);
  }
  return 0;
}

}  // namespace collimate::cli
