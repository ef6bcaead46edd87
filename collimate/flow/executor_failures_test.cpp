#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/flow/executor.h"
#include "collimate/graph/forms.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/toy_runs.h"

// A run meets modules that fail, workers that die and graphs that nothing can run.
namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only

TEST(ExecutorFailures, AFailureKeepsItsClassAndFirstCause) {
  EXPECT_EQ(base::message_of<base::GuardError>([&] {
              run_with([](RunOptions& options) { options.modules["reward"] = {"reward", {{"fail_at", 2037}}}; });
            }),
            "[toy reward] sample 2037 is bad (model reward, worker 1, iteration 2, node reward.score)");
}

TEST(ExecutorFailures, AModuleGivenInProcessIsRefusedInAWorkerProcess) {
  Registry registry = toy::registry();
  registry.add_pinned("own",
                      [](const nlohmann::json& parameters) { return std::make_unique<toy::Reward>(parameters); });
  const graph::Graph graph = toy::flow();
  const auto run_own = [&](Transport transport) {
    Outcome outcome;
    RunOptions options = options_for(outcome);
    options.transport = transport;
    options.modules["reward"] = {"own", nlohmann::json::object()};
    run(graph, graph::flattening(graph, 1), registry, options);
    return outcome;
  };
  EXPECT_EQ(run_own(Transport::kThreads), plain());
  EXPECT_EQ(base::message_of([&] { run_own(Transport::kProcesses); }),
            "[model reward] expected a module that a worker process can make, got own, which was given in process; "
            "try workers as threads");
}

TEST(ExecutorFailures, AnExportToWhereAFileIsIsARunError) {
  const std::string file = temporary("file-in-the-way");
  std::ofstream(file) << "a file";
  EXPECT_THAT(base::message_of<base::RunError>(
                  [&] { run_with([&](RunOptions& options) { options.exports["trainer"] = file + "/model"; }); }),
              testing::HasSubstr("expected to make the directory"));
  std::filesystem::remove(file);
}

nlohmann::json busy(int times) { return {{"busy_at", 2037}, {"busy_times", times}}; }

TEST(ExecutorFailures, AFailureThatMayNotHappenAgainIsTriedAgain) {
  EXPECT_EQ(run_with([](RunOptions& options) { options.modules["reward"] = {"reward", busy(2)}; }), plain());
}

TEST(ExecutorFailures, AFailureThatGoesOnHappeningStopsTheRun) {
  EXPECT_THAT(base::message_of<base::RunError>([&] {
                run_with([](RunOptions& options) { options.modules["reward"] = {"reward", busy(3)}; });
              }),
              testing::HasSubstr("[toy reward] busy at sample 2037"));
}

TEST(ExecutorFailures, ALostWorkerProcessIsStartedAgainAndItsRowsAreRedone) {
  std::string marker = temporary("marker");
  Outcome outcome = run_with(
      [&](RunOptions& options) {
        options.transport = Transport::kProcesses;
        options.modules["policy"] = {"policy", {{"die_once", marker}}};
      },
      Place::kApart);
  EXPECT_TRUE(std::filesystem::exists(marker));
  EXPECT_EQ(outcome, plain());
}

// The worker's death ends the last transfer and so the run, at whose end every worker is asked for its memory.
TEST(ExecutorFailures, AWorkerLostInTheLastTransferAnswersAtTheEnd) {
  size_t answers = 0;
  const std::string marker = temporary("transfer marker");
  run_with(
      [&](RunOptions& options) {
        options.transport = Transport::kProcesses;
        options.schedule.iterations = 1;
        options.modules["policy"] = {"policy", {{"die_once_updated", marker}}};
        options.on_end = [&](const RunEnd& end) { answers = end.memory.size(); };
      },
      Place::kApart);
  EXPECT_TRUE(std::filesystem::exists(marker)) << "nobody died";
  EXPECT_EQ(answers, 3U);
}

// The other workers of the model have their weights all the same, and it gets its own when it is back.
TEST(ExecutorFailures, AWorkerLostInATransferToSeveralHoldsNobodyUp) {
  const std::string marker = temporary("several marker");
  const auto several = [&](bool dies) {
    return run_with(
        [&](RunOptions& options) {
          options.transport = Transport::kProcesses;
          options.deadline_seconds = 20;
          if (dies) options.modules["policy"] = {"policy", {{"die_once_updated", marker}}};
        },
        Place::kSeveral);
  };
  const Outcome undisturbed = several(false);
  EXPECT_EQ(several(true), undisturbed);
  EXPECT_TRUE(std::filesystem::exists(marker)) << "nobody died";
}

TEST(ExecutorFailures, AnExpiredDeadlineSaysWhoWaitsForWhom) {
  const std::string text = base::message_of<base::RunError>([&] {
    run_with([](RunOptions& options) {
      options.deadline_seconds = 0.3;
      options.modules["reward"] = {"reward", {{"sleep_seconds", 2.0}}};
    });
  });
  EXPECT_NE(text.find("no progress for 0.3 s"), std::string::npos) << text;
  EXPECT_NE(text.find("reward.score"), std::string::npos) << text;
  EXPECT_NE(text.find("worker 1"), std::string::npos) << text;
}

// The worker's thread makes the other modules when the run and its registry are long gone.
TEST(ExecutorFailures, AWorkerThatSetsUpAfterTheRunsEndHarmsNobody) {
  const int built = trainers_built;
  const auto may_go_on = std::make_shared<std::atomic<bool>>(false);
  const std::string text = base::message_of<base::RunError>([&] {
    Registry registry = toy::registry();
    registry.add("slow policy", [may_go_on](const nlohmann::json&) {
      while (!*may_go_on) std::this_thread::yield();
      return std::make_unique<Policy>();
    });
    RunOptions options = toy::run_options(1);
    options.deadline_seconds = 0.1;
    options.modules["policy"] = {"slow policy", nlohmann::json::object()};
    const graph::Graph graph = toy::flow();
    run(graph, graph::flattening(graph, 1), registry, options);
  });
  EXPECT_THAT(text, testing::HasSubstr("setup of worker 0"));
  *may_go_on = true;
  while (trainers_built == built) std::this_thread::yield();
}

TEST(ExecutorFailures, UnknownModuleKindIsAnInputErrorThatListsTheKnown) {
  EXPECT_EQ(base::message_of([&] {
              run_with([](RunOptions& options) { options.modules["reward"] = {"judge", nullptr}; });
            }),
            "[module kind] expected one of keep, policy, reward, trainer, got judge");
}

// Nobody else has what it learnt: there is nothing to start it again with.
TEST(ExecutorFailures, ALostTrainerEndsTheRunAndSaysHowItDied) {
  testing::internal::CaptureStderr();
  const std::string error = base::message_of<base::RunError>([&] {
    run_with(
        [](RunOptions& options) {
          options.transport = Transport::kProcesses;
          options.modules["trainer"] = {"trainer", {{"die_at", 1}}};
        },
        Place::kApart);
  });
  EXPECT_THAT(error, testing::HasSubstr("with the state of trainer: [worker "));
  EXPECT_THAT(error, testing::HasSubstr("the worker process ended with signal 9 (Killed)"));
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("starting it again"), std::string::npos);
}

// The other one waits for it in a sum: who says first that it is gone names it.
TEST(ExecutorFailures, ALostRankOfATrainerOfTwoProcessesEndsTheRun) {
  const std::string error = base::message_of<base::RunError>([&] {
    run_with(
        [](RunOptions& options) {
          options.transport = Transport::kProcesses;
          options.deadline_seconds = 1e6;
          options.modules["trainer"] = {"trainer", {{"die_at", 1}, {"die_rank", 1}}};
        },
        Place::kBothOnTwo);
  });
  EXPECT_THAT(error, testing::AnyOf(testing::HasSubstr("[worker 1] the worker process ended with signal 9 (Killed)"),
                                    testing::ContainsRegex("the process of rank 1 \\([0-9]+\\) has ended")));
}

TEST(ExecutorFailures, ARowThatComesTwiceIsAnError) {
  EXPECT_THAT(base::message_of<base::RunError>([&] {
                run_with([](RunOptions& options) { options.modules["policy"] = {"policy", {{"twice", true}}}; });
              }),
              testing::HasSubstr("[node policy.generate] expected each row that it was fed at most once"));
}

std::string refusal(const graph::Placement& placement) {
  Outcome outcome;
  return base::message_of([&] { run(flow(), placement, toy::registry(), options_for(outcome)); });
}

// The toy's numbers are whole on every rank.
TEST(ExecutorFailures, AWeightLinkBetweenDevicesMayHaveUnlikeLayouts) {
  graph::Placement placement = graph::separation(flow(), 4, 2);
  placement.layouts["policy"]["generate"].tp = 2;
  EXPECT_EQ(refusal(placement), "");
}

// On the same devices each worker copies what it has from one model to the other.
TEST(ExecutorFailures, AWeightLinkBetweenDifferentPartsOnOneWorkerIsRefused) {
  graph::Placement placement = graph::flattening(flow(), 4);
  graph::Layout& trains = placement.layouts["trainer"]["train"];
  graph::Layout& generates = placement.layouts["policy"]["generate"];
  trains.tp = 2;
  const std::string why =
      "[weights trainer -> policy] expected the same part of the weights of both on worker {}, got "
      "trainer.train with tp {}, pp {}, ep 1, zero {} and policy.generate with tp {}, pp {}, ep 1, "
      "zero 0; try one layout for both, or layouts of dp alone";
  EXPECT_EQ(refusal(placement), fmt::format(fmt::runtime(why), 0, 2, 1, 0, 1, 1));
  generates.tp = 2;
  EXPECT_EQ(refusal(placement), "");
  trains.zero = 3;
  EXPECT_EQ(refusal(placement), fmt::format(fmt::runtime(why), 0, 2, 1, 3, 2, 1));
  // Stages of one trainer of four ranks, and those of two generators of two, are 0, 1, 0, 1.
  trains = generates = {.pp = 2};
  EXPECT_EQ(refusal(placement), "");
  generates = {};
  EXPECT_EQ(refusal(placement), fmt::format(fmt::runtime(why), 0, 1, 2, 0, 1, 1));
  trains = {.zero = 2};
  generates = {};
  EXPECT_EQ(refusal(placement), "");
}

// A worker that is started again has the weights of its beginning until those of now have come.
TEST(ExecutorFailures, AWorkerLostInAnEvaluationIsStartedAgainAndGetsTheWeightsOfNow) {
  const std::string marker = temporary("evaluation marker");
  const auto evaluated = [&](const nlohmann::json& policy) {
    std::vector<std::string> lines;
    const Outcome outcome = run_with(
        [&](RunOptions& options) {
          options.transport = Transport::kProcesses;
          options.modules["policy"] = {"policy", policy};
          options.schedule.evaluate_every = 2;
          options.evaluations = {generating_evaluation()};
          options.evaluations[0].on_result = [&](const IterationResult& result) { lines.push_back(line_of(result)); };
        },
        Place::kApart);
    EXPECT_EQ(outcome, plain());
    return lines;
  };
  const std::vector<std::string> expected = evaluated(nlohmann::json::object());
  EXPECT_EQ(evaluated({{"die_at_open", 3}, {"died_open", marker}}), expected);
  EXPECT_TRUE(std::filesystem::exists(marker)) << "nobody died";
}

}  // namespace
}  // namespace collimate::flow
