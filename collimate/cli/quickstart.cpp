#include "collimate/cli/quickstart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/metrics.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/process.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/train.h"
#include "collimate/report/report.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;

// The config of step 1: {0} is the task's directory, {1} iterations, {2} seed, {3} updates of the warm-up.
constexpr const char* kSftConfig = R"(# Step 1: learn the form of the task from demonstrations.
recipe: sft
models:
  policy: {{path: {0}/start, from_scratch: true, initializer_std: 0.02}}
data:
  train: {0}/demonstrations.jsonl
  eval: {0}/validation.jsonl
train:
  samples_per_update: 32
  learning_rate: 1e-3
  weight_decay: 0.1
  warmup_updates: {3}
run: {{iterations: {1}, seed: {2}, evaluate_every: 25, patience: 2}}
)";

// The config of step 2: {0} is the task's directory, {1} iterations, {2} seed, {3} the model of step 1, {4} updates of
// the warm-up.
constexpr const char* kGrpoConfig =
    R"(# Step 2: practise on problems without answers shown, rewarded when the answer is right.
recipe: grpo
models:
  policy: {{path: {3}}}
data:
  train: {0}/problems.jsonl
  eval: {0}/held_out.jsonl
reward: [{{rule: exact}}]
algorithm: {{loss_type: grpo, beta: 0.1}}  # a pull to the model of step 1: rewards that say nothing leave it there
rollout: {{prompts_per_iteration: 64, samples_per_prompt: 8, prompt_tokens: 16, completion_tokens: 10}}
train:
  learning_rate: 1e-4
  warmup_updates: {4}
  lr_schedule: linear  # the noise of the last updates dies out
run: {{iterations: {1}, seed: {2}, samples_every: 40, evaluate_every: 20}}
)";

constexpr int64_t kSftIterations = 600, kGrpoIterations = 120;

struct Quickstart {
  std::string output;
  int64_t seed = 1;
  int64_t sft_iterations = 0;
  int64_t grpo_iterations = 0;
  bool judged = false;  // the runs have the default length, so bounds are checked
  bool afresh = false;  // runs of an earlier call are run again, else continued or their results returned
};

void note(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

// Throws InputError if the call runs afresh, which removes runs, and the directory holds files of something else.
void check_output(const Quickstart& q) {
  const fs::path root = q.output;
  const bool empty = !fs::exists(root) || (fs::is_directory(root) && fs::is_empty(root));
  if (!q.afresh || empty || fs::is_directory(root / "task")) return;
  throw base::InputError(base::expectation("--output", "a new directory or one of an earlier quickstart",
                                           root.string() + ", which holds other files", "another --output"));
}

// Writes the config beside the directory of the run `name` and runs it.
recipe::TrainOutcome train_config(const Quickstart& q, const std::string& name, const std::string& text,
                                  const std::vector<std::string>& sets) {
  const fs::path directory = fs::path(q.output) / name;
  if (q.afresh && fs::exists(directory / "config.resolved.yaml")) fs::remove_all(directory);
  fs::create_directories(directory.parent_path());
  const fs::path path = directory.string() + ".yaml";
  host::write_file_atomically(path, text);
  recipe::TrainCall call;
  call.output = directory;
  call.stop = &stop_on_signals();
  call.note = note;
  return recipe::train(recipe::load(path, sets), call);
}

// Returns the updates of the warm-up, fewer than `usual` if the run is not longer than that.
int64_t warmup(int64_t iterations, int64_t usual) { return std::min(usual, iterations - 1); }

std::string sft_config(const fs::path& task, int64_t iterations, const Quickstart& q) {
  return fmt::format(kSftConfig, task.string(), iterations, q.seed, warmup(iterations, 10));
}

fs::path task_of(const Quickstart& q) {
  fs::path task = fs::path(q.output) / "task";
  write_quickstart_task({.seed = static_cast<uint64_t>(q.seed)}, task);
  return task;
}

// Writes only the task's files, for tutorials and for runs of one's own.
int write_task(const Quickstart& q) {
  fmt::print("{}\n", task_of(q).string());
  return 0;
}

// Writes the task's files and runs step 1; returns the seconds of step 1.
double learn_form(const Quickstart& q) {
  const fs::path task = task_of(q);
  const std::string text = sft_config(task, q.sft_iterations, q);
  return train_config(q, "sft", text, {}).seconds;
}

using Result = QuickstartResult;

double accuracy(const nlohmann::ordered_json& evaluation) { return 100 * evaluation.at("val/accuracy").get<double>(); }

// Runs step 2 under the name `name`, with further keys of the config set by `sets`.
Result practise(const Quickstart& q, const std::string& name, const std::vector<std::string>& sets) {
  const fs::path root = q.output;
  const std::string text = fmt::format(kGrpoConfig, (root / "task").string(), q.grpo_iterations, q.seed,
                                       (root / "sft" / "model").string(), warmup(q.grpo_iterations, 5));
  const recipe::TrainOutcome outcome = train_config(q, name, text, sets);
  return {accuracy(outcome.first_evaluation), accuracy(outcome.last_evaluation), outcome.seconds};
}

// Prints a line for each missed bound and returns the exit code: 1 if there is any, else 0.
int judge(const Quickstart& q, const std::vector<std::string>& missed) {
  for (const std::string& line : missed) note(fmt::format("[quickstart, seed {}] {}", q.seed, line));
  return missed.empty() ? 0 : 1;
}

// Runs one seed without controls. The seconds that it prints are those of the two runs, in this call or an earlier one.
int single(const Quickstart& q) {
  check_output(q);
  const double form_seconds = learn_form(q);
  const Result result = practise(q, "grpo", {});
  const fs::path directory = fs::path(q.output) / "grpo";
  const fs::path page = fs::path(q.output) / "report.html";
  host::write_file_atomically(page, report::render_report(directory));
  fmt::print("held-out accuracy {:.1f}% -> {:.1f}% in {:.0f} s; report: {}\n", result.before, result.after,
             form_seconds + result.seconds, page.string());
  return q.judged ? judge(q, missed_bounds(result)) : 0;
}

// Continues SFT from the model of step 1, with evaluations before and after only; returns its seconds.
double continue_sft(const Quickstart& q, const std::string& name, int64_t iterations) {
  const fs::path root = q.output;
  const std::string text = sft_config(root / "task", iterations, q);
  return train_config(q, name, text,
                      {"run.patience=0", "run.evaluate_every=0", "models.policy.from_scratch=false",
                       "models.policy.path=" + (root / "sft" / "model").string()})
      .seconds;
}

// Returns the first decile of the seconds of a run's iterations: nine of ten took at least that long. Slow iterations
// at its beginning do not change it.
double quick_iteration_seconds(const fs::path& run) {
  std::vector<double> seconds;
  for (const base::MetricsRecord& record : base::read_metrics(run / "metrics.jsonl"))
    if (const double* value = record.find("timing_s/step")) seconds.push_back(*value);
  COLLIMATE_CHECK(!seconds.empty());
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 10];
}

// Continues SFT on the same demonstrations for at least `seconds`, the time that GRPO took, then runs the same
// evaluation, by one iteration of GRPO at learning rate 0.
Result sft_for(const Quickstart& q, double seconds) {
  continue_sft(q, "sft_probe", std::max<int64_t>(10, q.sft_iterations / 3));
  const double each = quick_iteration_seconds(fs::path(q.output) / "sft_probe");
  auto iterations = static_cast<int64_t>(std::ceil(seconds / each));
  double took = continue_sft(q, "sft_continued", iterations);
  for (; took < seconds; took = continue_sft(q, "sft_continued", iterations)) iterations += iterations / 4 + 1;
  const std::string model = (fs::path(q.output) / "sft_continued" / "model").string();
  Result result =
      practise(q, "sft_continued_evaluated",
               {"models.policy.path=" + model, "run.iterations=1", "train.learning_rate=0", "train.warmup_updates=0"});
  result.seconds = took;
  return result;
}

// Runs one seed with its controls and prints its rows of the table; returns the exit code, 1 when bounds are missed.
int compare_seed(const Quickstart& q) {
  const auto row = [&](const char* name, const Result& r) {
    fmt::print("| {} | {} | {:.1f} % | {:.1f} % | {:.1f} |\n", q.seed, name, r.before, r.after, r.seconds);
    std::fflush(stdout);
  };
  learn_form(q);
  const Result grpo = practise(q, "grpo", {});
  row("GRPO", grpo);
  const Result shuffled = practise(q, "shuffled", {"algorithm.shuffle_rewards=true"});
  row("GRPO, rewards shuffled", shuffled);
  const Result rate_zero = practise(q, "rate-0", {"train.learning_rate=0"});
  row("GRPO, learning rate 0", rate_zero);
  Result sft = sft_for(q, grpo.seconds);
  sft.before = grpo.before;
  row("SFT continued for as long", sft);
  if (!q.judged) return 0;
  std::vector<std::string> missed = missed_bounds(grpo);
  for (std::string& line : missed_bounds(grpo, shuffled, rate_zero, sft)) missed.push_back(std::move(line));
  return judge(q, missed);
}

int compare(const Quickstart& base_call, int64_t seeds) {
  std::vector<Quickstart> calls(static_cast<size_t>(seeds), base_call);
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].seed += static_cast<int64_t>(i);
    calls[i].output = fmt::format("{}/seed-{}", base_call.output, calls[i].seed);
    check_output(calls[i]);
  }
  fmt::print("| seed | run | before | after | seconds |\n|---|---|---|---|---|\n");
  int code = 0;
  for (const Quickstart& q : calls) code = std::max(code, compare_seed(q));
  return code;
}

constexpr int kLeastRise = 25, kLeastAccuracy = 70, kMostDrift = 3, kLeastLead = 10;  // % points

std::string bound_line(const std::string& expected, double got) {
  return fmt::format("expected {}, got {:.1f}", expected, got);
}

}  // namespace

std::vector<std::string> missed_bounds(const QuickstartResult& grpo) {
  std::vector<std::string> lines;
  if (grpo.after - grpo.before < kLeastRise)
    lines.push_back(bound_line(fmt::format("a rise by at least {} points", kLeastRise), grpo.after - grpo.before));
  if (grpo.after < kLeastAccuracy)
    lines.push_back(bound_line(fmt::format("a held-out accuracy of at least {} %", kLeastAccuracy), grpo.after));
  return lines;
}

std::vector<std::string> missed_bounds(const QuickstartResult& grpo, const QuickstartResult& shuffled,
                                       const QuickstartResult& rate_zero, const QuickstartResult& sft_continued) {
  std::vector<std::string> lines;
  for (const auto& [name, result] : {std::pair("rewards shuffled", shuffled), std::pair("learning rate 0", rate_zero)})
    if (std::abs(result.after - result.before) > kMostDrift)
      lines.push_back(
          bound_line(fmt::format("{} to move by at most {} points", name, kMostDrift), result.after - result.before));
  if (grpo.after - sft_continued.after < kLeastLead)
    lines.push_back(bound_line(fmt::format("SFT continued to end at least {} points below GRPO", kLeastLead),
                               grpo.after - sft_continued.after));
  return lines;
}

int bench_quickstart(const Arguments& arguments) {
  CLI::App app{"trains a small model to sort digits: by SFT, then by GRPO", "bench quickstart"};
  Quickstart q;
  bool one = false, reduced = false, task_only = false;
  int64_t seeds = 3;
  app.add_flag("--single", one, "run one seed without controls; runs that are there already are not repeated");
  app.add_flag("--reduced", reduced, "run a tenth of the iterations, afresh each time, as a smoke test");
  app.add_flag("--task-only", task_only, "write the task's files below OUTPUT/task and train nothing");
  app.add_option("--seeds", seeds, "how many seeds to run, each with its controls and afresh")->check(at_least(1));
  app.add_option("--seed", q.seed, "the first seed")->check(at_least(0));
  app.add_option("--sft-iterations", q.sft_iterations, "most iterations of SFT; default: 600")->check(at_least(1));
  app.add_option("--grpo-iterations", q.grpo_iterations, "iterations of GRPO; default: 120")->check(at_least(1));
  app.add_option("--output", q.output,
                 "the directory to write; default: runs/quickstart, with --reduced runs/quickstart-reduced");
  if (!parse(app, arguments)) return 0;
  if (q.sft_iterations == 0) q.sft_iterations = reduced ? kSftIterations / 10 : kSftIterations;
  if (q.grpo_iterations == 0) q.grpo_iterations = reduced ? kGrpoIterations / 10 : kGrpoIterations;
  q.judged = !reduced && q.sft_iterations == kSftIterations && q.grpo_iterations == kGrpoIterations;
  if (q.output.empty()) q.output = reduced ? "runs/quickstart-reduced" : "runs/quickstart";
  q.afresh = reduced || !one;
  if (task_only) return write_task(q);
  return one ? single(q) : compare(q, seeds);
}

}  // namespace collimate::cli
