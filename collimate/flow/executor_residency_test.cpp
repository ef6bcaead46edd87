#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/host/file_io.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/device_book.h"
#include "tests/support/flow/toy_runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/watched_messages.h"

// Models that take turns on their devices, while runs evaluate, move weights, save and go on.
namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only

// A run on one device, and what its evaluations found.
struct Turns {
  Outcome outcome;
  std::vector<std::string> evaluated;
  DeviceBook book;
};

struct Asked {
  bool swapped = true;
  bool linked = true;
  int64_t staleness = 0;
  std::function<void(RunOptions&)> change = [](RunOptions&) {};
};

// Policy and trainer, and a judge that the evaluation alone has.
void run_in_turns(const Asked& asked, Turns& turns) {
  RunOptions options = options_for(turns.outcome, 4);
  options.deadline_seconds = 10;
  options.schedule.evaluate_every = 1;
  options.schedule.evaluate_first = true;
  options.evaluations = {judged_evaluation()};
  options.evaluations[0].on_result = [&](const IterationResult& result) {
    turns.evaluated.push_back(line_of(result) + fmt::format("{}", result.batches.at("judge").all(batch::kScore)));
  };
  asked.change(options);
  graph::Graph graph = flow();
  if (!asked.linked) graph.links.clear();
  const graph::Graph all = graph::with_models_of(graph, graphs_of(options.evaluations));
  graph::Placement placement = graph::flattening(all, 1);
  placement.staleness = asked.staleness;
  for (const char* model : {"policy", "trainer", "judge"})
    if (asked.swapped && all.models.contains(model)) placement.residency[model] = graph::Residency::kSwap;
  Registry registry = registry_on(turns.book);
  run(graph, placement, registry, options);
}

TEST(ExecutorResidency, ModelsThatTakeTurnsAreNeverTwoOnADeviceInEvaluationsEither) {
  Turns plain, turns;
  run_in_turns({.swapped = false, .linked = false}, plain);
  run_in_turns({.linked = false}, turns);
  EXPECT_EQ(turns.outcome, plain.outcome);
  EXPECT_EQ(turns.evaluated, plain.evaluated);
  EXPECT_EQ(turns.evaluated.size(), 5U);
  EXPECT_THAT(turns.book.wrong(), testing::IsEmpty());
  EXPECT_EQ(turns.book.most(), 1U);
  EXPECT_GE(turns.book.uses("call"), 5);
}

TEST(ExecutorResidency, ATransferHasBothOfItsModelsThere) {
  Turns plain, turns;
  run_in_turns({.swapped = false}, plain);
  run_in_turns({}, turns);
  EXPECT_EQ(turns.outcome, plain.outcome);
  EXPECT_EQ(turns.evaluated, plain.evaluated);
  EXPECT_THAT(turns.book.wrong(), testing::IsEmpty());
  EXPECT_EQ(turns.book.most(), 2U);
  EXPECT_GE(turns.book.uses("weights"), 2 * 5);
}

// Generation is an iteration ahead when an evaluation begins, and its model is on its way.
TEST(ExecutorResidency, AnEvaluationOfARunThatIsAheadComesToItsEnd) {
  for (const double delay : {0.0, 0.001}) {
    const test::WatchedMessages watched(0, delay);
    Turns turns;
    run_in_turns({.staleness = 1}, turns);
    EXPECT_EQ(turns.outcome.lines.size(), 4U);
    EXPECT_EQ(turns.evaluated.size(), 5U);
    EXPECT_THAT(turns.book.wrong(), testing::IsEmpty());
  }
}

TEST(ExecutorResidency, EvaluationsHaveTimesOfTheirOwn) {
  Turns turns;
  std::vector<std::string> order;
  run_in_turns({.change =
                    [&](RunOptions& options) {
                      Evaluation often = judged_evaluation("often"), rare = judged_evaluation("rare");
                      for (Evaluation* evaluation : {&often, &rare})
                        evaluation->on_result = [&order, name = evaluation->name](const IterationResult& result) {
                          order.push_back(fmt::format("{} {}", name, result.iteration));
                        };
                      often.first = false;
                      rare.every = 3;
                      options.evaluations = {often, rare};
                    }},
               turns);
  EXPECT_THAT(order, testing::ElementsAre("rare -1", "often 0", "often 1", "often 2", "rare 2", "often 3", "rare 3"));
  EXPECT_THAT(turns.book.wrong(), testing::IsEmpty());
}

// Killed in its third iteration; checkpoints, evaluations and the export find each model on its device.
TEST(ExecutorResidency, ARunOfModelsThatTakeTurnsGoesOnFromItsCheckpoint) {
  const std::string directory = temporary("turns"), exported = temporary("turns-exported");
  const auto saves = [&](RunOptions& options) {
    options.schedule.save_every = 1;
    options.directory = directory;
    options.exports = {{"trainer", exported}};
  };
  Turns whole, killed, rest;
  run_in_turns({.change = [](RunOptions& options) { options.schedule.save_every = 1; }}, whole);
  EXPECT_THROW(run_in_turns({.change =
                                 [&](RunOptions& options) {
                                   saves(options);
                                   options.on_iteration = [](const IterationResult& result) {
                                     if (result.iteration == 2) throw base::RunError("killed");
                                   };
                                 }},
                            killed),
               base::RunError);
  run_in_turns({.change =
                    [&](RunOptions& options) {
                      saves(options);
                      options.resume = Checkpoints(directory).latest();
                    }},
               rest);
  EXPECT_EQ(rest.outcome.lines, std::vector<std::string>(whole.outcome.lines.begin() + 2, whole.outcome.lines.end()));
  EXPECT_EQ(rest.evaluated, std::vector<std::string>(whole.evaluated.begin() + 2, whole.evaluated.end()));
  EXPECT_EQ(graph::check_recording(host::read_file(directory + "/events.jsonl")), "");
  EXPECT_TRUE(std::filesystem::exists(exported + "/worker-0"));
  for (const Turns* turns : {&whole, &killed, &rest}) EXPECT_THAT(turns->book.wrong(), testing::IsEmpty());
  EXPECT_EQ(rest.book.uses("load"), 2) << "the judge keeps nothing";
  EXPECT_EQ(rest.book.uses("save"), 2 * 2);
  EXPECT_EQ(rest.book.uses("export"), 1);
}

// The best checkpoint is loaded again when the run has ended, which has left one of the models on the device.
TEST(ExecutorResidency, TheBestCheckpointOfModelsThatTakeTurnsIsExported) {
  Turns turns;
  run_in_turns(
      {.change =
           [&](RunOptions& options) {
             options.schedule.save_every = 1;
             options.directory = temporary("turns-best");
             options.keep.value = [](int64_t step) { return std::optional(step == 2 ? 1.0 : 0.0); };
             options.exports = {{"policy", temporary("turns-policy")}, {"trainer", temporary("turns-trainer")}};
             options.on_end = [](const RunEnd& end) { EXPECT_EQ(checkpoint_step(end.exported), 2); };
           }},
      turns);
  EXPECT_THAT(turns.book.wrong(), testing::IsEmpty());
  EXPECT_EQ(turns.book.uses("load"), 2);
  EXPECT_EQ(turns.book.uses("export"), 2);
}

// Each of the three takes 40,000 bytes; two have room beside each other.
void share_budget(RunOptions& options, int64_t budget_bytes) {
  options.memory_budget_bytes = budget_bytes;
  for (const char* model : {"policy", "trainer", "judge"}) options.modules[model] = {model, {{"planned_bytes", 40000}}};
}

TEST(ExecutorResidency, ModelsStayOnTheirDeviceAsFarAsTheBudgetGoes) {
  std::vector<int> moves;
  for (const int64_t budget : {90000, 130000}) {
    Turns turns;
    run_in_turns({.change = [&](RunOptions& options) { share_budget(options, budget); }}, turns);
    EXPECT_EQ(turns.outcome.lines.size(), 4U);
    EXPECT_THAT(turns.book.wrong(), testing::IsEmpty());
    EXPECT_EQ(turns.book.most(), static_cast<size_t>(budget / 40000));
    moves.push_back(turns.book.moves());
  }
  EXPECT_GT(moves[0], 6);
  EXPECT_EQ(moves[1], 3 + 3 + 3) << "each is set up, moved off and loaded once";
}

TEST(ExecutorResidency, ABudgetWithoutRoomForWhatIsUsedTogetherIsRefused) {
  Turns turns;
  EXPECT_EQ(base::message_of(
                [&] { run_in_turns({.change = [](RunOptions& options) { share_budget(options, 70000); }}, turns); }),
            "[memory of device 0] expected at most 68.4 KiB (run.memory_budget) while weights go from trainer to "
            "policy, got a plan of 78.1 KiB (policy 39.1 KiB, trainer 39.1 KiB); try run.memory_budget: 1, residency: "
            "swap for more models or models on other devices");
}

// The first model that has no room may not be the one that wants the most of it.
TEST(ExecutorResidency, ABudgetThatTheRefusalNamesIsEnough) {
  constexpr int64_t kMebi = 1 << 20;
  const auto run_with = [&](int64_t budget_bytes) {
    Turns turns;
    const auto change = [&](RunOptions& options) {
      options.memory_budget_bytes = budget_bytes;
      for (const auto& [model, size] : {std::pair("policy", 2), {"trainer", 3}, {"judge", 9}})
        options.modules[model] = {model, {{"planned_bytes", size * kMebi}}};
    };
    return base::message_of([&] { run_in_turns({.change = change}, turns); });
  };
  EXPECT_EQ(run_with(kMebi),
            "[memory of device 0] expected at most 1 MiB (run.memory_budget) while judge runs, got a plan of 9 MiB "
            "(judge 9 MiB); try run.memory_budget: 9, residency: swap for more models or models on other devices");
  EXPECT_EQ(run_with(9 * kMebi), "");
}

TEST(ExecutorResidency, AnEvaluationThatTrainsIsRefused) {
  Turns turns;
  EXPECT_EQ(base::message_of([&] {
              run_in_turns({.change =
                                [](RunOptions& options) {
                                  options.evaluations[0].graph = flow();
                                  options.evaluations[0].graph.links.clear();
                                }},
                           turns);
            }),
            "[evaluation] expected functions that leave weights as they are, got trainer.train, which writes them");
}

}  // namespace
}  // namespace collimate::flow
