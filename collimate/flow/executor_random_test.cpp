#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/host/file_io.h"
#include "tests/support/base/dice.h"
#include "tests/support/base/rounds.h"
#include "tests/support/flow/device_book.h"
#include "tests/support/flow/toy_runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/watched_messages.h"

// The executor with random placements, turns, staleness, evaluations, saves, delays, failures and kills. Everything
// follows from one number.
namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only
using base::Dice;

struct RandomRun {
  graph::Graph graph = flow();
  graph::Placement placement;
  graph::ScheduleOptions schedule;
  std::vector<Evaluation> evaluations;
  nlohmann::json reward = nlohmann::json::object();
  std::optional<int64_t> killed_in;     // an iteration
  std::optional<int64_t> killed_after;  // an iteration, in its evaluation
  double delay_seconds = 0;
};

graph::Placement random_placement(const graph::Graph& graph, Dice& dice) {
  graph::Placement made;
  made.devices = 1 + dice.below(3);
  for (const char* model : {"policy", "trainer", "judge"}) {
    if (!graph.models.contains(model)) continue;
    graph::ResourceGroup& group = made.groups[std::string("of ") + model];
    group.models = {model};
    const int first = dice.below(made.devices), count = 1 + dice.below(made.devices - first);
    for (int device = first; device < first + count; ++device) group.devices.push_back(device);
    if (!dice.one_in(3)) made.residency[model] = graph::Residency::kSwap;
  }
  made.staleness = dice.below(2);
  return made;
}

RandomRun random_run(uint64_t seed) {
  Dice dice(seed);
  RandomRun made;
  for (int i = dice.below(3); i > 0; --i) {
    const std::string name = fmt::format("evaluation-{}", i);
    made.evaluations.push_back(dice.one_in(3) ? generating_evaluation() : judged_evaluation());
    made.evaluations.back().name = name;
    if (dice.one_in(2)) made.evaluations.back().every = dice.below(3);
  }
  made.placement = random_placement(graph::with_models_of(made.graph, graphs_of(made.evaluations)), dice);
  made.schedule.iterations = 2 + dice.below(3);
  made.schedule.save_every = dice.below(3);
  made.schedule.evaluate_every = dice.below(3);
  made.schedule.evaluate_first = dice.one_in(2);
  made.delay_seconds = dice.one_in(2) ? 0.001 : 0;
  if (dice.one_in(3)) made.reward = {{"busy_at", 2037}, {"busy_times", 1}};
  if (dice.one_in(2)) made.killed_in = dice.below(static_cast<int>(made.schedule.iterations));
  if (dice.one_in(3)) made.killed_after = dice.below(static_cast<int>(made.schedule.iterations)) - 1;
  return made;
}

// All that runs reported, by iteration, and by evaluation and iteration: the last word counts.
struct Found {
  std::map<int64_t, std::string> lines;
  std::map<std::pair<std::string, int64_t>, std::string> evaluated;
};

// With what the policy drew, in which its weights show.
std::string full_line_of(const IterationResult& result) {
  std::string line = line_of(result);
  for (const auto& [node, rows] : result.batches)
    for (int64_t r = 0; rows.has(batch::kIds.name) && r < rows.rows(); ++r) {
      const auto ids = rows.row(batch::kIds, r);
      line += fmt::format(" {}", fmt::join(ids.begin(), ids.end(), ","));
    }
  return line;
}

RunOptions options_of(const RandomRun& random, Found& found) {
  RunOptions options = run_options(random.schedule.iterations);
  options.deadline_seconds = 20;
  options.schedule.save_every = random.schedule.save_every;
  options.schedule.exact_versions = random.schedule.exact_versions;
  options.schedule.evaluate_every = random.schedule.evaluate_every;
  options.schedule.evaluate_first = random.schedule.evaluate_first;
  options.evaluations = random.evaluations;
  options.modules["reward"] = {"reward", random.reward};
  options.on_iteration = [&found](const IterationResult& result) {
    found.lines[result.iteration] = full_line_of(result);
  };
  for (Evaluation& evaluation : options.evaluations)
    evaluation.on_result = [&found, name = evaluation.name](const IterationResult& result) {
      found.evaluated[{name, result.iteration}] = full_line_of(result);
    };
  return options;
}

// Throws once where the random run is to be killed.
void kill_once(RunOptions& options, const RandomRun& random, bool& killed) {
  const auto strikes = [&killed](const std::optional<int64_t>& at, int64_t iteration) {
    if (killed || at != iteration) return;
    killed = true;
    throw base::RunError("killed");
  };
  options.on_iteration = [=, take = options.on_iteration, &random](const IterationResult& result) {
    strikes(random.killed_in, result.iteration);
    take(result);
  };
  for (Evaluation& evaluation : options.evaluations)
    evaluation.on_result = [=, take = evaluation.on_result, &random](const IterationResult& result) {
      strikes(random.killed_after, result.iteration);
      take(result);
    };
}

// Runs it to its end, going on from its newest checkpoint where it is killed.
void run_random(const RandomRun& random, const std::string& directory, DeviceBook& book, Found& found) {
  const test::WatchedMessages watched(0, random.delay_seconds);
  Registry registry = registry_on(book);
  bool killed = false;
  for (bool ended = false; !ended;) {
    RunOptions options = options_of(random, found);
    options.directory = directory;
    options.resume = Checkpoints(directory).latest();
    kill_once(options, random, killed);
    const bool before = killed;
    try {
      run(random.graph, random.placement, registry, options);
      ended = true;
    } catch (const base::RunError& error) {
      if (before || !killed) throw;
    }
    book.clear();
  }
}

Found run_plainly(const RandomRun& random) {
  Found found;
  DeviceBook book;
  Registry registry = registry_on(book);
  const graph::Graph all = graph::with_models_of(random.graph, graphs_of(random.evaluations));
  run(random.graph, graph::flattening(all, 1), registry, options_of(random, found));
  return found;
}

const uint64_t kSeeds = base::rounds(24);

TEST(ExecutorRandom, RunsEndAsPlainOnesWhateverTakesTurnsWaitsFailsOrIsKilled) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomRun random = random_run(seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, yaml_text(random.placement)));
    const std::string directory = temporary(fmt::format("random-{}", seed));
    DeviceBook book;
    Found found;
    ASSERT_NO_THROW(run_random(random, directory, book, found));
    const Found plain = run_plainly(random);
    EXPECT_THAT(book.wrong(), testing::IsEmpty());
    EXPECT_EQ(found.lines.size(), plain.lines.size());
    EXPECT_EQ(found.evaluated.size(), plain.evaluated.size());
    EXPECT_EQ(graph::check_recording(host::read_file(directory + "/events.jsonl")), "");
    if (random.placement.staleness > 0) continue;  // how far a rollout is ahead follows from the clock
    EXPECT_EQ(found.lines, plain.lines);
    EXPECT_EQ(found.evaluated, plain.evaluated);
  }
}

// A run whose policy is on devices of its own, ahead of the trainer.
RandomRun run_ahead(uint64_t seed) {
  RandomRun made = random_run(seed);
  Dice dice(seed + 1000);
  made.placement.devices = 3;
  made.placement.groups = {{"of policy", {.devices = {2}, .models = {"policy"}}},
                           {"of trainer", {.devices = {0}, .models = {"trainer"}}}};
  if (dice.one_in(2)) made.placement.groups["of policy"].devices = {1, 2};
  if (graph::with_models_of(made.graph, graphs_of(made.evaluations)).models.contains("judge"))
    made.placement.groups["of judge"] = {.devices = {dice.below(3)}, .models = {"judge"}};
  else
    made.placement.residency.erase("judge");
  made.placement.staleness = 1 + dice.below(2);
  made.schedule.exact_versions = true;
  made.schedule.iterations += 3;
  made.reward["levels"] = false;
  return made;
}

TEST(ExecutorRandom, RunsAheadOfTrainingDoNotDependOnTheClockNorOnKills) {
  int ahead = 0;
  const uint64_t seeds = kSeeds / 3;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const RandomRun random = run_ahead(seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, yaml_text(random.placement)));
    RandomRun undisturbed = random, synchronous = random;
    undisturbed.killed_in = undisturbed.killed_after = std::nullopt;
    undisturbed.delay_seconds = random.delay_seconds > 0 ? 0 : 0.001;
    synchronous.placement.staleness = 0;
    DeviceBook book;
    Found found, plain, together;
    const std::string directory = temporary(fmt::format("ahead-{}", seed));
    ASSERT_NO_THROW(run_random(random, directory, book, found));
    ASSERT_NO_THROW(run_random(undisturbed, temporary(fmt::format("ahead-{}-undisturbed", seed)), book, plain));
    ASSERT_NO_THROW(run_random(synchronous, temporary(fmt::format("ahead-{}-together", seed)), book, together));
    EXPECT_THAT(book.wrong(), testing::IsEmpty());
    EXPECT_EQ(graph::check_recording(host::read_file(directory + "/events.jsonl")), "");
    EXPECT_EQ(found.lines, plain.lines);
    EXPECT_EQ(found.evaluated, plain.evaluated);
    if (plain.lines != together.lines) ++ahead;
  }
  EXPECT_GT(ahead, static_cast<int>(seeds) / 2) << "older weights show in what is drawn";
}

}  // namespace
}  // namespace collimate::flow
