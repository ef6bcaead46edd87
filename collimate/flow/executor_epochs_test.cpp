#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/flow/executor.h"
#include "collimate/host/file_io.h"
#include "tests/support/flow/toy_runs.h"
#include "tests/support/graph/replay.h"

namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only

// Epochs of three iterations, of which the last has one group of rows.
void cut_epochs(RunOptions& options) {
  options.schedule.iterations = 7;
  options.schedule.epoch_iterations = 3;
  options.schedule.last_rows = 4;
}

TEST(ExecutorEpochs, TheirLastIterationHasFewerRows) {
  const std::vector<std::string> lines = run_with(cut_epochs).lines;
  std::vector<size_t> rows;
  for (const std::string& line : lines) rows.push_back(nlohmann::json::parse(line)["reward.score uid"].size());
  EXPECT_EQ(rows, (std::vector<size_t>{12, 12, 4, 12, 12, 4, 12}));
  for (const Place place : {Place::kBothOnTwo, Place::kApart})
    EXPECT_EQ(run_with(cut_epochs, place).lines, lines) << "also where a device gets no row";
}

TEST(ExecutorEpochs, ARunThatGoesOnHasTheSameRows) {
  const std::vector<std::string> whole = run_with(cut_epochs).lines;
  const graph::Graph graph = toy::flow();
  const Registry registry = toy::registry();
  for (const int64_t killed : {2, 3, 5}) {  // in a short iteration, and behind it
    Outcome first, rest;
    RunOptions options = options_for(first);
    cut_epochs(options);
    options.schedule.save_every = 1;
    options.directory = temporary("epochs");
    options.on_iteration = [&](const IterationResult& result) {
      if (result.iteration == killed) throw base::RunError("killed");
    };
    EXPECT_THROW(run(graph, graph::flattening(graph, 2), registry, options), base::RunError);
    RunOptions again = options_for(rest);
    cut_epochs(again);
    again.schedule.save_every = 1;
    again.resume = Checkpoints(options.directory).latest();
    again.directory = temporary("epochs-on");
    run(graph, graph::flattening(graph, 1), registry, again);
    const auto step = static_cast<std::ptrdiff_t>(checkpoint_step(again.resume));
    EXPECT_EQ(rest.lines, std::vector<std::string>(whole.begin() + step, whole.end())) << killed;
    EXPECT_EQ(graph::check_recording(host::read_file(again.directory + "/events.jsonl")), "") << killed;
  }
}

}  // namespace
}  // namespace collimate::flow
