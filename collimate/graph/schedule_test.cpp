#include "collimate/graph/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "collimate/base/error.h"
#include "collimate/base/memory_state.h"
#include "collimate/graph/json_fields.h"
#include "tests/support/graph/replay.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

// Reads the events of a text trace: the lines that begin with '>', in the words of describe().
class EventReader {
 public:
  explicit EventReader(const Graph& graph) : graph_(graph) {}

  Event read(const std::string& line) const {
    std::istringstream in(line);
    std::string word, name;
    in >> word;
    if (word == "begin") return Event::begin();
    if (word == "rows" || word == "dropped") {
      const Task at = task(in);
      int64_t first = 0, count = 0;
      char plus = 0;
      in >> first >> plus >> count;
      return word == "rows" ? Event::rows(at, first, count) : Event::dropped(at, first, count);
    }
    if (word == "finished") return Event::finished(task(in));
    if (word == "failed") {
      const Task at = task(in);
      in >> name;
      return Event::failed(at, name == "retryable:", rest(in));
    }
    if (word == "weights") return weights(in);
    if (word == "lost" || word == "back") return worker(in, word);
    if (word == "asked") return Event::asked(rest(in) == "to stop" ? Ask::kStop : Ask::kSave);
    in >> name;
    const int index = static_cast<int>(number(in));
    return Event::resident_at(word, index, rest(in) == "is loaded");
  }

 private:
  static int64_t number(std::istream& in) {
    int64_t value = -1;
    in >> value;
    return value;
  }
  static std::string rest(std::istream& in) {
    std::string text;
    std::getline(in >> std::ws, text);
    return text;
  }
  Task task(std::istream& in) const {
    std::string word;
    in >> word;
    const bool evaluation = word == "evaluation";  // of its own graph, of which the nodes have the same numbers
    if (evaluation) in >> word;
    const size_t a = word.find('/'), b = word.rfind('/'), dot = word.find('.', b);
    return {std::stoll(word), graph_.node_index(word.substr(a + 1, b - a - 1)), std::stoi(word.substr(b + 2)),
            dot == std::string::npos ? 0 : std::stoi(word.substr(dot + 1)), evaluation ? 1 : 0};
  }
  static Event weights(std::istream& in) {
    std::string model, word;
    in >> model >> word;
    const int worker = word == "on" ? static_cast<int>(number(in)) : -1;
    if (word == "on") in >> word;
    return Event::weights_at(model, number(in), worker);
  }
  static Event worker(std::istream& in, const std::string& what) {
    std::string word;
    in >> word;
    const int index = static_cast<int>(number(in));
    if (what == "back") return Event::back(index);
    in.get();  // the colon
    return Event::lost(index, rest(in));
  }
  const Graph& graph_;
};

std::string path_of(const std::string& name) {
  return COLLIMATE_SOURCE_DIR "/collimate/graph/testdata/" + name + ".txt";
}

// Feeds the trace's events to a fresh Schedule: the actions must be those of the trace. Lines with '#' are for the
// reader.
void expect_trace(const std::string& name, const Graph& graph, const Placement& placement,
                  const ScheduleOptions& options, const std::vector<EvaluationGraph>& evaluations = {}) {
  std::ifstream file(path_of(name));
  ASSERT_TRUE(file) << path_of(name);
  Schedule schedule(graph, placement, options, evaluations);
  std::string written, made;
  for (std::string line; std::getline(file, line);) {
    written += line + "\n";
    if (line.empty() || line[0] == '#') made += line + "\n";
    if (line.rfind("> ", 0) != 0) continue;
    const Event event = EventReader(graph).read(line.substr(2));
    const std::span<const Action> actions = schedule.on(event);
    const Step step{event, {actions.begin(), actions.end()}};
    made += trace_text({graph, evaluations}, std::span(&step, 1));
    ASSERT_EQ(read_json<Event>(event, "event"), event);
    for (const Action& action : actions) ASSERT_EQ(read_json<Action>(action, "action"), action);
  }
  if (std::getenv("COLLIMATE_WRITE_TRACES") != nullptr) std::ofstream(path_of(name)) << made;
  EXPECT_EQ(made, written);
  EXPECT_TRUE(schedule.stopped()) << schedule.waiting();
}

// Generates two rows and nothing else.
EvaluationGraph generating(Graph graph) {
  graph.nodes.resize(1);
  graph.links.clear();
  return {.graph = std::move(graph), .rows = 2};
}

Placement two_devices(std::vector<std::string> first, std::vector<std::string> second) {
  Placement placement;
  placement.devices = 2;
  placement.groups["main"] = {{0}, std::move(first)};
  placement.groups["side"] = {{1}, std::move(second)};
  return placement;
}

TEST(ScheduleTrace, SynchronousGrpo) {
  const Graph graph = samples::grpo();
  expect_trace("grpo_synchronous", graph, flattening(graph, 1),
               {.iterations = 2, .rows = 4, .group_size = 2, .save_every = 2});
}

TEST(ScheduleTrace, PpoOnOneDevice) {
  const Graph graph = samples::ppo();
  expect_trace("ppo_one_device", graph, flattening(graph, 1), {.iterations = 1, .rows = 4});
}

TEST(ScheduleTrace, PpoOnTwoDevicesOverlaps) {
  expect_trace("ppo_two_devices", samples::ppo(), two_devices({"policy", "value", "trainer"}, {"reference", "reward"}),
               {.iterations = 1, .rows = 4});
}

TEST(ScheduleTrace, StalenessOne) {
  expect_trace("staleness_one", samples::grpo(), two_devices({"policy"}, {"trainer"}),
               {.iterations = 3, .rows = 2, .staleness = 1});
}

TEST(ScheduleTrace, FilteredGroupsAreRefilled) {
  const Graph graph = samples::grpo(true);
  expect_trace("filtered_refilled", graph, flattening(graph, 1), {.iterations = 1, .rows = 4, .group_size = 2});
}

TEST(ScheduleTrace, AWorkerLostAndBack) {
  Placement placement;
  placement.devices = 3;
  placement.groups["rollout"] = {{0, 1}, {"policy"}};
  placement.groups["training"] = {{2}, {"trainer"}};
  expect_trace("worker_lost_and_back", samples::grpo(), placement, {.iterations = 2, .rows = 4, .group_size = 2});
}

TEST(ScheduleTrace, WeightsInFlightPauseTheService) {
  expect_trace("weights_in_flight", samples::grpo(), two_devices({"policy"}, {"trainer"}),
               {.iterations = 2, .rows = 2, .staleness = 1, .update_in_flight = true});
}

TEST(ScheduleTrace, ALoopWaitsForItsServicesWeights) {
  ModelHandle game = host_function(samples::host("game", Granularity::kRow, {}, "ids:i64"));
  ModelHandle policy("policy", {samples::generate()}), trainer("trainer", {samples::train({"ids"})});
  const Graph graph = trace(
      [&](Value prompts) {
        trainer.train(loop(game, {&policy})(prompts));
        link(trainer, policy, every(1));
      },
      samples::prompts(), "loop");
  expect_trace("loop_over_services", graph, flattening(graph, 1), {.iterations = 2, .rows = 2});
}

TEST(ScheduleTrace, SwappedModelsTakeTurns) {
  const Graph graph = samples::grpo();
  Placement placement = flattening(graph, 1);
  placement.residency = {{"policy", Residency::kSwap}, {"trainer", Residency::kSwap}};
  expect_trace("swapped_models", graph, placement, {.iterations = 1, .rows = 2, .evaluate_every = 1},
               {generating(graph)});
}

// Events that the options or the graph make impossible.
std::string stop_cause(Schedule& schedule, const Event& event) {
  const std::span<const Action> actions = schedule.on(event);
  if (actions.empty() || actions.back().kind != ActionKind::kStop) return "no stop";
  return actions.back().cause;
}

Schedule begun(const Graph& graph, const Placement& placement, ScheduleOptions options = {.iterations = 2, .rows = 2},
               const std::vector<EvaluationGraph>& evaluations = {}) {
  Schedule schedule(graph, placement, options, evaluations);
  schedule.on(Event::begin());
  schedule.on(Event::weights_at("policy", 0));
  return schedule;
}

TEST(Schedule, StopsWithTheFirstCauseWhenATaskFailsForGood) {
  const Graph graph = samples::grpo();
  Schedule schedule = begun(graph, flattening(graph, 1));
  EXPECT_EQ(stop_cause(schedule, Event::failed({0, 0, 0, 0}, false, "out of memory")),
            "0/policy.generate/r0: out of memory");
  EXPECT_TRUE(schedule.on(Event::failed({0, 0, 0, 0}, false, "later")).empty());
}

TEST(Schedule, RetriesTwiceThenStops) {
  const Graph graph = samples::grpo();
  Schedule schedule = begun(graph, flattening(graph, 1));
  for (int part = 0; part < 2; ++part)
    EXPECT_EQ(stop_cause(schedule, Event::failed({0, 0, 0, part}, true, "flaky")), "no stop");
  EXPECT_EQ(stop_cause(schedule, Event::failed({0, 0, 0, 2}, true, "flaky")), "0/policy.generate/r0.2: flaky");
}

TEST(Schedule, AWorkerWithTrainedStateStopsTheRun) {
  Schedule schedule = begun(samples::grpo(), two_devices({"policy"}, {"trainer"}));
  EXPECT_EQ(stop_cause(schedule, Event::lost(1, "killed")), "worker 1 with the state of trainer: killed");
}

TEST(Schedule, AWorkerThatDoesNotComeBackStopsTheRunWhenNobodyElseCan) {
  Schedule schedule = begun(samples::grpo(), two_devices({"policy"}, {"trainer"}));
  EXPECT_EQ(stop_cause(schedule, Event::lost(0, "killed")), "no stop");
  EXPECT_EQ(stop_cause(schedule, Event::expired(0)),
            "[worker 0] expected to be back within 600 s, for policy.generate, got killed");
}

Placement two_generators() {
  Placement placement;
  placement.devices = 3;
  placement.groups["rollout"] = {{0, 1}, {"policy"}};
  placement.groups["training"] = {{2}, {"trainer"}};
  return placement;
}

TEST(Schedule, AWorkerThatIsBackTakesTheRowsOfOneThatIsNot) {
  const Graph graph = samples::grpo();
  const Placement placement = two_generators();
  Schedule schedule = begun(graph, placement, {.iterations = 1, .rows = 4, .group_size = 2});
  for (int worker : {0, 1}) EXPECT_EQ(stop_cause(schedule, Event::lost(worker, "killed")), "no stop");
  schedule.on(Event::back(0));
  int64_t fed = 0;
  for (const Action& action : schedule.on(Event::weights_at("policy", 0, 0)))
    if (action.kind == ActionKind::kFeed) fed += action.count;
  EXPECT_EQ(fed, 4) << schedule.waiting();
}

// The process that takes its place has the weights of the start until the scheduler sends it today's.
TEST(Schedule, AnEvaluationWaitsForALostWorkerAndItsWeights) {
  const Graph graph = samples::grpo();
  const Placement placement = two_generators();
  Schedule schedule =
      begun(graph, placement, {.iterations = 1, .rows = 4, .group_size = 2, .evaluate_every = 1}, {generating(graph)});
  const auto evaluates = [](Schedule& of, const Event& event) {
    const std::span<const Action> actions = of.on(event);
    return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
      return action.kind == ActionKind::kStart && action.task.graph == 1;
    });
  };
  for (int replica : {0, 1}) {
    schedule.on(Event::rows({0, 0, replica, 0}, 2 * int64_t{replica}, 2));
    schedule.on(Event::finished({0, 0, replica, 0}));
  }
  schedule.on(Event::rows({0, 1, 0, 0}, 0, 4));
  for (int node : {1, 2}) schedule.on(Event::finished({0, node, 0, 0}));
  EXPECT_EQ(stop_cause(schedule, Event::lost(1, "killed")), "no stop");
  EXPECT_FALSE(evaluates(schedule, Event::finished({0, 3, 0, 0})));
  Schedule given_up = schedule;
  EXPECT_FALSE(evaluates(schedule, Event::weights_at("policy", 1))) << "worker 1 is not back";
  EXPECT_FALSE(evaluates(schedule, Event::back(1))) << "worker 1 is at the weights of the start";
  EXPECT_TRUE(evaluates(schedule, Event::weights_at("policy", 1, 1))) << schedule.waiting();
  EXPECT_FALSE(evaluates(given_up, Event::expired(0))) << "the others' weights are on their way";
  EXPECT_TRUE(evaluates(given_up, Event::weights_at("policy", 1))) << "the run goes on without worker 1";
}

// As builds wrote it in which an evaluation was a schedule of its own.
TEST(Schedule, AStateOfBeforeEvaluationsWereTasksIsRead) {
  const Graph graph = samples::grpo();
  const Placement placement = flattening(graph, 1);
  const ScheduleOptions options{.iterations = 2, .rows = 2, .evaluate_every = 1};
  const std::vector<EvaluationGraph> evaluations = {generating(graph)};
  Schedule schedule = begun(graph, placement, options, evaluations);
  base::MemoryState now, before;
  schedule.save(now);
  nlohmann::json state = now.json("schedule");
  for (const char* key : {"evaluations", "evaluations_wanted", "saving"}) state.erase(key);
  for (nlohmann::json& run : state.at("active")) run.erase("graph");
  state["evaluation"] = -1;
  state["evaluating"] = true;
  before.json("schedule", state);
  Schedule loaded(graph, placement, options, evaluations);
  loaded.load(before);
  loaded.on(Event::begin());
  const std::span<const Action> actions = loaded.on(Event::weights_at("policy", 0));
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(describe({graph, evaluations}, actions[0]), "start evaluation -1/policy.generate/r0 on 0");
}

TEST(Schedule, AskedToStopItSavesAfterTheIterationAndAtOnceTheSecondTime) {
  const Graph graph = samples::grpo();
  Schedule schedule = begun(graph, flattening(graph, 1));
  EXPECT_EQ(stop_cause(schedule, Event::asked(Ask::kStop)), "no stop");
  Schedule copy = schedule;
  EXPECT_EQ(stop_cause(copy, Event::asked(Ask::kStop)), "at once, the second time");
  for (int node = 0; node < 3; ++node) schedule.on(Event::finished({0, node, 0, 0}));
  const std::span<const Action> last = schedule.on(Event::finished({0, 3, 0, 0}));
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(describe(graph, last[0]), "save 0");
  EXPECT_EQ(describe(graph, last[1]), "stop, asked: after iteration 1");
  EXPECT_TRUE(schedule.on(Event::asked(Ask::kSave)).empty());
  EXPECT_FALSE(schedule.on(Event::begin()).empty()) << "a new process goes on";
  EXPECT_FALSE(schedule.stopped());
}

// Generation is an iteration ahead; once a stop is asked, what was not begun is not.
TEST(Schedule, AskedToStopItBeginsNoLaterIteration) {
  const Graph graph = samples::grpo();
  const Placement placement = two_devices({"policy"}, {"trainer"});
  const auto begins_the_next = [&](bool asked) {
    Schedule schedule = begun(graph, placement, {.iterations = 3, .rows = 2, .staleness = 1});
    if (asked) schedule.on(Event::asked(Ask::kStop));
    schedule.on(Event::rows({0, 0, 0, 0}, 0, 2));
    const std::span<const Action> actions = schedule.on(Event::finished({0, 0, 0, 0}));
    return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
      return action.kind == ActionKind::kStart && action.task.iteration == 1;
    });
  };
  EXPECT_TRUE(begins_the_next(false));
  EXPECT_FALSE(begins_the_next(true));
}

TEST(Schedule, RowsThatTwoFiltersDropAreReplacedOnce) {
  ModelHandle policy("policy", {samples::generate()}), trainer("trainer", {samples::train({"ids"})});
  const auto filter = [](const std::string& name) {
    FunctionSpec keep = samples::host(name, Granularity::kGroup, {"ids"}, name + "_kept");
    keep.drops_rows = true;
    return host_function(keep);
  };
  ModelHandle first = filter("first"), second = filter("second");
  const Graph graph = trace(
      [&](Value prompts) {
        Value completions = policy("generate", prompts);
        trainer.train(merge(first(completions), second(completions)));
        link(trainer, policy, every(1));
      },
      samples::prompts(), "two_filters");
  Schedule schedule = begun(graph, flattening(graph, 1), {.iterations = 1, .rows = 4, .group_size = 2});
  schedule.on(Event::rows({0, 0, 0, 0}, 0, 2));
  const auto generated = [&](const char* filter_name) {
    int64_t rows = 0;
    for (const Action& action : schedule.on(Event::dropped({0, graph.node_index(filter_name), 0, 0}, 0, 2)))
      if (action.kind == ActionKind::kFeed && action.task.node == 0) rows += action.count;
    return rows;
  };
  EXPECT_EQ(generated("first"), 2);
  EXPECT_EQ(generated("second"), 0);
}

TEST(Schedule, AFilterThatDropsEverythingStopsTheRun) {
  const Graph graph = samples::grpo(true);
  Schedule schedule = begun(graph, flattening(graph, 1), {.rows = 2, .replace_limit = 2});
  const int filter = graph.node_index("filter"), reward = graph.node_index("reward");
  std::string cause;
  for (int64_t row = 0; row < 4 && cause != "no stop yet"; ++row) {
    schedule.on(Event::rows({0, 0, 0, 0}, row, 1));
    schedule.on(Event::rows({0, reward, 0, 0}, row, 1));
    cause = stop_cause(schedule, Event::dropped({0, filter, 0, 0}, row, 1));
    if (cause != "no stop") break;
  }
  EXPECT_THAT(cause,
              testing::HasSubstr("[iteration 1] expected 2 rows left by the filters out of at most 4, got 4 asked"));
}

TEST(Schedule, RefusesOptionsAndFiltersThatCannotWork) {
  const Graph graph = samples::grpo();
  const auto error = [&](const Graph& g, const ScheduleOptions& options) -> std::string {
    try {
      Schedule(g, flattening(g, 1), options);
    } catch (const base::InputError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(graph, {.rows = 5, .group_size = 2}), "[schedule.rows] expected a multiple of group_size 2, got 5");
  Graph filtered = samples::grpo(true);
  filtered.models["reward"].functions[0].granularity = Granularity::kIteration;
  EXPECT_EQ(error(filtered, {}),
            "[schedule.reward] expected granularity row or group of a filter and all above it, got iteration");
}

}  // namespace
}  // namespace collimate::graph
