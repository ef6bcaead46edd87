// Laws of placement that follow from phases of fixed + work / devices, on the simulator and the cost model.
#include <gtest/gtest.h>

#include <map>

#include "collimate/base/at.h"
#include "collimate/graph/forms.h"
#include "collimate/plan/cost/phase.h"
#include "collimate/plan/simulate/simulate.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::plan {
namespace {

using graph::Graph;
using graph::Placement;

constexpr int64_t kRows = 48;

// A phase takes fixed + work / devices.
struct Scaling {
  double fixed = 0, work = 0;
};
using Times = std::map<std::string, Scaling>;  // by node id; others take no time

Predictions predictions_of(const Graph& graph, const Placement& placement, const Times& times) {
  Predictions made;
  made.transition_seconds = 0;
  made.seconds = [&graph, &placement, &times](const graph::Task& task, int64_t rows) {
    const auto found = times.find(graph.node(task.node).id);
    if (found == times.end()) return 0.0;
    const std::vector<graph::Replica> all = graph::replicas(graph, placement, task.node);
    const double ranks = static_cast<double>(base::at(all, task.replica).size());
    const double share = 1.0 / static_cast<double>(all.size());  // of the rows that this replica gets
    // A function that streams works on all its rows at once, another on one feed after the other.
    const double part = graph.spec(task.node).streams ? 1 : static_cast<double>(rows) / (kRows * share);
    return part * (found->second.fixed + found->second.work * share / ranks);
  };
  return made;
}

// Seconds between iterations once the first ones are over.
double period(const Graph& graph, const Placement& placement, const Times& times, int64_t staleness = 0) {
  const Predictions predictions = predictions_of(graph, placement, times);
  graph::ScheduleOptions options{.iterations = 4, .rows = kRows, .staleness = staleness};
  const double early = simulate(graph, placement, options, predictions).seconds;
  options.iterations = 12;
  return (simulate(graph, placement, options, predictions).seconds - early) / 8;
}

TEST(Laws, ColocatedPhasesAddUp) {
  const Graph graph = graph::samples::grpo();
  const Times times = {{"policy.generate", {3, 40}}, {"trainer.train", {2, 24}}};
  for (const int n : {1, 2, 4, 8})
    EXPECT_NEAR(period(graph, graph::flattening(graph, n), times), (3 + 2) + (40.0 + 24.0) / n, 1e-9);
}

TEST(Laws, AnAsynchronousSplitIsTheSlowerSide) {
  const Graph graph = graph::samples::grpo();
  const Times times = {{"policy.generate", {3, 40}}, {"trainer.train", {2, 24}}};
  for (const int x : {2, 4, 6})
    EXPECT_NEAR(period(graph, graph::separation(graph, 8, 8 - x), times, 1), std::max(3 + 40.0 / x, 2 + 24.0 / (8 - x)),
                1e-9);
}

// With linear scaling the best split only ties with colocation; with fixed parts it wins.
TEST(Laws, TheBestSplitTiesUnlessScalingIsSublinear) {
  const Graph graph = graph::samples::grpo();
  const auto best = [&](const Times& times) {
    double shortest = 1e9;
    for (int x = 1; x < 8; ++x)
      shortest = std::min(shortest, period(graph, graph::separation(graph, 8, 8 - x), times, 1));
    return shortest;
  };
  const Times linear = {{"policy.generate", {0, 40}}, {"trainer.train", {0, 24}}};
  EXPECT_NEAR(best(linear), period(graph, graph::flattening(graph, 8), linear), 1e-9);
  const Times latent = {{"policy.generate", {6, 40}}, {"trainer.train", {4, 24}}};
  EXPECT_LT(best(latent), period(graph, graph::flattening(graph, 8), latent) - 3);
}

TEST(Laws, ASynchronousSplitNeverWinsWithLinearScaling) {
  const Graph graph = graph::samples::grpo();
  const Times times = {{"policy.generate", {3, 40}}, {"trainer.train", {2, 24}}};
  for (int x = 1; x < 8; ++x)
    EXPECT_GE(period(graph, graph::separation(graph, 8, 8 - x), times, 0),
              period(graph, graph::flattening(graph, 8), times) - 1e-9);
}

// Reference and reward that do not wait for each other.
Graph two_scores() {
  using namespace graph::samples;  // NOLINT
  graph::ModelHandle policy("policy", {generate()});
  graph::ModelHandle reference("reference", {score("log_probs", {"ids"}, "reference_log_probs:f32")});
  graph::ModelHandle reward("reward", {score("score", {"ids"}, "scores:f32")});
  graph::ModelHandle trainer("trainer", {train({"ids", "scores:f32", "reference_log_probs:f32"})});
  return graph::trace(
      [&](graph::Value input) {
        graph::Value completions = policy("generate", input);
        trainer.train(merge(completions, reference("log_probs", completions), reward("score", completions)));
        link(trainer, policy, graph::every(1));
      },
      prompts(), "two scores");
}

// Interleaving gains at most T_ref + T_rm − max(2 T_ref, 2 T_rm) ≤ 0 of linear scaling, and the shorter fixed part.
TEST(Laws, InterleavingGainsOnlyWhatDoesNotScale) {
  const Graph graph = two_scores();
  const Placement flat = graph::flattening(graph, 4), mixed = graph::interleaving(graph, 4);
  const auto gain = [&](const Times& times) { return period(graph, flat, times) - period(graph, mixed, times); };
  EXPECT_NEAR(gain({{"reference.log_probs", {0, 8}}, {"reward.score", {0, 8}}}), 0, 1e-9);
  EXPECT_NEAR(gain({{"reference.log_probs", {0, 8}}, {"reward.score", {0, 24}}}), 8.0 - 2 * 6, 1e-9);
  EXPECT_NEAR(gain({{"reference.log_probs", {3, 0}}, {"reward.score", {5, 0}}}), 3, 1e-9);
}

TEST(Laws, TheGainOfStalenessSaturates) {
  const Graph graph = graph::samples::grpo();
  const Times times = {{"policy.generate", {3, 40}}, {"trainer.train", {2, 24}}};
  const Placement split = graph::separation(graph, 8, 3);
  const double none = period(graph, split, times, 0), one = period(graph, split, times, 1);
  EXPECT_LT(one, 0.8 * none);
  for (const int64_t more : {2, 4, 8}) EXPECT_NEAR(period(graph, split, times, more), one, 1e-9);
}

// With pp stages and M micro-batches, (pp − 1) / (M + pp − 1) is idle time.
TEST(Laws, APipelineIdlesItsShare) {
  Job job{shape::find_outline("llama2-13b"), Work::kTrain, true, DeviceKinds().find("A100-80"), 8, 8, {}};
  job.load.rows = 512;
  job.load.updates = 1;
  for (const int pp : {2, 4, 8})
    for (const int64_t rows : {1, 4, 16}) {
      Execution how;
      how.layout = {8 / pp, pp, 1, 1, 1, 0, rows};
      const PhaseTime time = train_time(job, how, constants_of(""));
      const double micro_batches = 512.0 / static_cast<double>(rows);
      EXPECT_NEAR(time.bubble / (time.bubble + time.compute + time.tensor), (pp - 1) / (micro_batches + pp - 1), 1e-9);
    }
}

// Where memory traffic decides, decoding through pp stages one at a time costs what one stage of all layers costs:
// only batches in flight divide it.
TEST(Laws, ASerialPipelineDecodesNoFasterThanOneStage) {
  Job job{shape::find_outline("llama2-13b"), Work::kGenerate, true, DeviceKinds().find("A100-80"), 8, 8, {}};
  job.load.rows = 256;
  Constants c = constants_of("");
  c.decode_layer_seconds = c.decode_step_seconds = c.phase_seconds = 0;
  Execution filled, one;
  filled.layout.pp = 8;
  c.serial_pipeline = 1;
  const double serial = generate_time(job, filled, c, 0).total();
  c.serial_pipeline = 0;
  const double busy = generate_time(job, filled, c, 0).total();
  job.devices = 1;  // one stage with all rows; memory aside it takes what the serial pipeline takes
  job.gpu.memory_bytes *= 8;
  EXPECT_NEAR(serial, generate_time(job, one, c, 0).total(), 0.02 * serial);
  EXPECT_GT(serial, 3 * busy);
}

}  // namespace
}  // namespace collimate::plan
