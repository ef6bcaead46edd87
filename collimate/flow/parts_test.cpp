#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/dist_actor.h"
#include "collimate/flow/metric.h"
#include "collimate/flow/metric_key.h"
#include "collimate/flow/row_table.h"
#include "collimate/flow/shared_store.h"
#include "collimate/flow/updates.h"
#include "collimate/host/file_io.h"
#include "tests/support/base/error_of.h"

namespace collimate::flow {
namespace {

Batch numbered(std::vector<int64_t> uids) {
  Batch batch(static_cast<int64_t>(uids.size()));
  batch.set(batch::kUid, std::move(uids));
  return batch;
}

std::vector<int64_t> uids(const Batch& batch) {
  return batch.empty() ? std::vector<int64_t>() : batch.all(batch::kUid);
}

TEST(MetricKey, IsAListInCheckpointsAndOrdersMetrics) {
  const std::map<MetricKey, int> metrics = {{{2, 0, 0, 7, 0}, 3}, {{1, 2, 3, 4, 5}, 1}, {{1, 2, 3, 5, 0}, 2}};
  const nlohmann::json saved = metrics;
  EXPECT_EQ(saved.dump(), "[[[1,2,3,4,5],1],[[1,2,3,5,0],2],[[2,0,0,7,0],3]]");
  EXPECT_EQ((saved.get<std::map<MetricKey, int>>()), metrics);
}

TEST(DistActor, SplitsOverDpRepeatsOverTpAndCollectsInOrder) {
  graph::FunctionSpec spec;
  graph::Layout layout;
  layout.tp = 2;
  layout.dp = 2;
  DistActor actor(spec, layout, {4, 5, 6, 7});
  std::vector<Batch> parts = actor.split(numbered({10, 11, 12, 13, 14}), 1);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(uids(parts[0]), (std::vector<int64_t>{10, 11}));
  EXPECT_EQ(uids(parts[1]), uids(parts[0]));
  EXPECT_EQ(uids(parts[2]), (std::vector<int64_t>{12, 13, 14}));
  EXPECT_EQ(uids(parts[3]), uids(parts[2]));
  EXPECT_EQ(actor.collecting(), (std::vector<int>{0, 2}));
  std::vector<Batch> results = {parts[0], parts[2]};
  EXPECT_EQ(uids(actor.collect(results)), (std::vector<int64_t>{10, 11, 12, 13, 14}));
}

// Two prompts of two rows each, and a long row: the ranks of an update have 10 and 9 tokens.
TEST(DistActor, RanksOfAnUpdateHaveAsManyTokens) {
  graph::Layout layout;
  layout.dp = 2;
  const DistActor actor(graph::FunctionSpec(), layout, {0, 1});
  Batch rows = numbered({1, 2, 3, 4, 5});
  rows.set(batch::kPromptUid, std::vector<int64_t>{70, 40, 70, 40, 90});
  rows.set_ragged(batch::kIds,
                  std::vector<std::vector<int32_t>>{{1, 2, 3}, {1, 2}, {1, 2, 3}, {1, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}});
  const std::vector<Batch> parts = actor.split_update(rows, 1);
  EXPECT_EQ(uids(parts[0]), (std::vector<int64_t>{2, 4, 1, 3}));
  EXPECT_EQ(uids(parts[1]), (std::vector<int64_t>{5}));
  const std::vector<Batch> pairs = actor.split_update(rows.slice(0, 4), 2);
  EXPECT_EQ(uids(pairs[0]), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(uids(pairs[1]), (std::vector<int64_t>{3, 4}));
}

TEST(DistActor, CollectsFromTheLastPipelineStage) {
  graph::Layout layout;
  layout.pp = 2;
  layout.dp = 2;
  DistActor actor(graph::FunctionSpec(), layout, {0, 1, 2, 3});
  EXPECT_EQ(actor.collecting(), (std::vector<int>{1, 3}));
}

// 16 ranks in the order of dp, cp, pp, tp: dp is what the others leave.
TEST(DistActor, SplitsOverDpAloneWhereAllAxesAre) {
  graph::FunctionSpec spec;
  graph::Layout layout;
  layout.pp = layout.cp = layout.tp = 2;
  std::vector<int> workers(16);
  std::iota(workers.begin(), workers.end(), 20);
  const DistActor actor(spec, layout, workers);
  EXPECT_EQ(actor.mesh().size("dp"), 2);
  const std::vector<Batch> parts = actor.split(numbered({1, 2, 3, 4}), 1);
  ASSERT_EQ(parts.size(), 16U);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool second = i / 8 == 1;
    EXPECT_EQ(uids(parts[i]), second ? (std::vector<int64_t>{3, 4}) : (std::vector<int64_t>{1, 2})) << i;
  }
  EXPECT_EQ(actor.collecting(), (std::vector<int>{2, 10}));  // pp 1, cp 0, tp 0
  EXPECT_EQ(actor.reporting(), actor.collecting());
  spec.collect = graph::Collect::kNone;
  const DistActor trains(spec, layout, workers);
  EXPECT_TRUE(trains.collecting().empty());
  EXPECT_EQ(trains.reporting(), actor.reporting());
}

TEST(DistActor, WithoutDpEveryRankGetsAllRows) {
  graph::Layout layout;
  layout.pp = layout.cp = layout.tp = 2;
  const DistActor actor(graph::FunctionSpec(), layout, {0, 1, 2, 3, 4, 5, 6, 7});
  const std::vector<Batch> parts = actor.split(numbered({1, 2, 3}), 1);
  ASSERT_EQ(parts.size(), 8U);
  for (const Batch& part : parts) EXPECT_EQ(uids(part), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(actor.collecting(), (std::vector<int>{2}));
  EXPECT_EQ(actor.reporting(), (std::vector<int>{2}));
}

TEST(DistActor, GroupsStayTogetherAndBroadcastRepeats) {
  graph::FunctionSpec spec;
  spec.granularity = graph::Granularity::kGroup;
  graph::Layout layout;
  layout.dp = 2;
  DistActor actor(spec, layout, {0, 1});
  std::vector<Batch> parts = actor.split(numbered({0, 1, 2, 3, 4, 5}), 2);
  EXPECT_EQ(uids(parts[0]), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(uids(parts[1]), (std::vector<int64_t>{2, 3, 4, 5}));
  spec.dispatch = graph::Dispatch::kBroadcast;
  DistActor all(spec, layout, {0, 1});
  EXPECT_EQ(uids(all.split(numbered({7, 8}), 2)[1]), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(all.collecting(), (std::vector<int>{0}));
}

TEST(Updates, AreSortedByUidWhateverTheOrderOfRows) {
  nlohmann::json parameters = {{"rows_per_update", 2}};
  std::vector<Batch> updates = cut_updates(numbered({5, 3, 9, 1}), parameters);
  ASSERT_EQ(updates.size(), 2U);
  EXPECT_EQ(uids(updates[0]), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(uids(updates[1]), (std::vector<int64_t>{5, 9}));
  EXPECT_EQ(cut_updates(numbered({5, 3}), nullptr).size(), 1U);
}

TEST(Updates, EveryEpochHasEveryRowInItsOwnOrder) {
  std::vector<int64_t> all = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<Batch> updates = cut_updates(numbered(all), {{"rows_per_update", 4}, {"epochs", 2}});
  ASSERT_EQ(updates.size(), 4U);
  std::vector<Batch> second(updates.begin() + 2, updates.end());
  std::vector<int64_t> seen = uids(Batch::concatenate(second));
  EXPECT_NE(seen, all);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, all);
}

TEST(Updates, PairsStayTogether) {
  Batch rows = numbered({9, 1, 8, 2});
  rows.set(batch::kPairUid, std::vector<int64_t>{70, 70, 60, 60});
  std::vector<Batch> updates = cut_updates(rows, {{"rows_per_update", 2}});
  EXPECT_EQ(uids(updates[0]), (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(uids(updates[1]), (std::vector<int64_t>{9, 1}));
  EXPECT_THROW(cut_updates(rows, {{"rows_per_update", 3}}), base::InputError);
}

TEST(RowTable, JoinsSourcesByRowNumber) {
  RowTable table;
  std::vector<int64_t> numbers = {0, 1, 2, 3};
  table.put(RowTable::kInputs, numbers, numbered({10, 11, 12, 13}));
  std::vector<int64_t> late = {3, 1};
  Batch made = numbered({13, 11});
  made.set(batch::kReward, std::vector<float>{3.0F, 1.0F});
  table.put(0, late, made);
  std::vector<int> sources = {RowTable::kInputs, 0};
  std::vector<int64_t> wanted = {1, 3};
  Batch joined = table.join(sources, wanted);
  EXPECT_EQ(uids(joined), (std::vector<int64_t>{11, 13}));
  EXPECT_EQ(joined.all(batch::kReward), (std::vector<float>{1.0F, 3.0F}));
  EXPECT_EQ(table.numbers(0), wanted);
}

TEST(Metrics, ReduceByTheirRule) {
  MetricSet set;
  set.add({"a", 1.0, Reduce::kMean, 1.0});
  set.add({"b", 5.0, Reduce::kMax, 1.0});
  set.add({"a", 4.0, Reduce::kMean, 2.0});
  set.add({"b", 2.0, Reduce::kMax, 1.0});
  EXPECT_EQ(set.values().dump(), R"({"a":3.0,"b":5.0})");
}

TEST(Metrics, TheFirstNoteStaysWithItsMetric) {
  const std::vector<Metric> metrics = {{"errors", 0.0, Reduce::kSum},
                                       {"errors", 2.0, Reduce::kSum, 1.0, "the first"},
                                       {"errors", 1.0, Reduce::kSum, 1.0, "another"},
                                       {"mean", 1.0}};
  MetricSet set;
  set.add(nlohmann::json::parse(nlohmann::json(metrics).dump()).get<std::vector<Metric>>());
  EXPECT_EQ(set.values().dump(), R"({"errors":3.0,"mean":1.0})");
  EXPECT_EQ(set.notes(), (std::map<std::string, std::string>{{"errors", "the first"}}));
}

TEST(SharedStore, ServesTheNewestVersionNotAfter) {
  SharedStore store;
  store.put("beta", 2, 0.5);
  store.put("beta", 5, 0.25);
  EXPECT_FALSE(store.get("beta", 1).has_value());
  EXPECT_EQ(store.get("beta", 4), 0.5);
  EXPECT_EQ(store.get("beta", 9), 0.25);
  SharedStore replica;
  replica.apply(store.drain());
  EXPECT_EQ(replica.get("beta", 5), 0.25);
  EXPECT_TRUE(replica.drain().empty());
  replica.trim(5);
  EXPECT_EQ(replica.all().size(), 1U);
}

TEST(Checkpoints, AreCompleteOrAbsentAndOldOnesGo) {
  std::string directory = testing::TempDir() + "collimate-checkpoints-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory, 2);
  EXPECT_EQ(checkpoints.latest(), "");
  SharedStore store;
  for (int64_t step : {1, 2, 10}) {
    store.put("x", step, step);
    save_state(store, checkpoints.begin(step) + "/store");
    checkpoints.commit();
  }
  save_state(store, checkpoints.begin(11) + "/store");  // a kill before commit
  ASSERT_EQ(checkpoints.list().size(), 2U);
  EXPECT_EQ(checkpoint_step(checkpoints.latest()), 10);
  SharedStore loaded;
  load_state(loaded, checkpoints.latest() + "/store");
  EXPECT_EQ(loaded.get("x", 10), 10);
  EXPECT_THROW(load_state(loaded, directory + "/none"), base::RunError);
  EXPECT_THROW(checkpoint_step(directory), base::InputError);
}

TEST(Checkpoints, WhatIsMissingForeignOrOfAnotherStepIsDamage) {
  const std::string directory = testing::TempDir() + "collimate-damage-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory, 2);
  SharedStore store;
  for (int64_t step : {1, 2}) {
    store.put("x", step, step);
    const std::string building = checkpoints.begin(step);
    for (const char* folder : {"/store", "/models/other/rank-0"}) save_state(store, building + folder);
    checkpoints.commit();
  }
  const std::string first = checkpoints.list().front(), second = checkpoints.latest(), kept = directory + "/kept";
  EXPECT_EQ(damage_in(second), "");
  EXPECT_EQ(damage_in(second + "/"), "");
  const auto expect_damage = [&](const std::string& part) {
    EXPECT_NE(damage_in(second).find(part), std::string::npos) << part << " in " << damage_in(second);
  };
  std::filesystem::rename(second + "/models", kept);
  expect_damage(second + "/models/other/rank-0] expected a saved folder, got none");
  std::filesystem::copy(first + "/models", second + "/models", std::filesystem::copy_options::recursive);
  expect_damage(second + "/models/other/rank-0/files.json] expected");
  std::filesystem::remove_all(second + "/models");
  std::filesystem::rename(kept, second + "/models");
  save_state(store, second + "/models/other/rank-1");
  expect_damage("expected a file that checkpoint.json lists, got another");
  std::filesystem::remove_all(second);
  std::filesystem::rename(first, second);
  expect_damage("expected the state of step 2, got that of step 1");
}

// Rows of a tensor of six that a rank has, and a number.
struct RankState : base::Stateful {
  RankState(int rank, int ranks, int its_number = 0)
      : first(6 * rank / ranks), count(6 * (rank + 1) / ranks - first), number(its_number) {}
  base::TensorPart part() const { return {.name = "w", .rows = 6, .columns = 1, .box = {first, count, 0, 1}}; }
  void fill() {
    for (int64_t r = first; r < first + count; ++r) rows.push_back(static_cast<float>(r));
  }
  void save(base::StateWriter& out) const override {
    out.json("number", number);
    if (count > 0) out.tensors("weights", 0, std::vector{part()}, rows);
  }
  void load(base::StateReader& in) override {
    number = in.json("number");
    rows.assign(static_cast<size_t>(count), -1.0F);
    in.tensors("weights", std::vector{part()}, rows);
  }

  int64_t first, count;
  int number;
  std::vector<float> rows;
};

std::string saved_ranks(const std::string& name, int ranks, bool unlike) {
  std::string directory = testing::TempDir() + "collimate-ranks-" + std::to_string(getpid()) + "-" + name;
  std::filesystem::remove_all(directory);
  for (int r = 0; r < ranks; ++r) {
    RankState state(r, ranks, unlike ? r : 5);
    state.fill();
    save_state(state, rank_folder(directory, "policy", r));
  }
  return directory;
}

TEST(Checkpoints, AModelIsLoadedByAnyNumberOfRanks) {
  for (const int before : {1, 2, 4, 7}) {
    const std::string saved = saved_ranks("any", before, /*unlike=*/false);
    for (const int now : {1, 2, 3, 7})
      for (int r = 0; r < now; ++r) {
        RankState expected(r, now), state(r, now);
        expected.fill();
        load_rank(state, saved, "policy", r, now);
        EXPECT_EQ(state.rows, expected.rows) << r << " of " << now << " from " << before;
        EXPECT_EQ(state.number, 5);
      }
  }
}

TEST(Checkpoints, WhatRanksHaveOfTheirOwnStaysWithAsManyOfThem) {
  const std::string saved = saved_ranks("own", 3, /*unlike=*/true);
  RankState state(1, 3), alone(0, 1);
  load_rank(state, saved, "policy", 1, 3);
  EXPECT_EQ(state.number, 1);
  EXPECT_EQ(base::message_of([&] { load_rank(alone, saved, "policy", 0, 1); }),
            "[" + saved +
                "/models/policy] expected the states of 1 ranks, as each has another one, got 3; try as many "
                "devices for it as there were");
}

TEST(Checkpoints, OfAnotherFormNameTheVersionsThatWroteThem) {
  const std::string directory = testing::TempDir() + "collimate-form-" + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  Checkpoints checkpoints(directory, 2);
  save_state(SharedStore(), checkpoints.begin(1) + "/store");
  const std::string saved = checkpoints.commit(), list = saved + "/checkpoint.json";
  EXPECT_NO_THROW(check_form(saved));
  const auto problem_of = [&](const char* form) {
    nlohmann::json content = nlohmann::json::parse(host::read_file(list));
    content.erase("form");
    if (*form != '\0') content["form"] = nlohmann::json::parse(form);
    host::write_file_atomically(list, content.dump());
    return base::message_of([&] { check_form(saved); });
  };
  EXPECT_EQ(problem_of(""), "[" + list +
                                "] expected a checkpoint of form 2, got form 1, which builds of 0.1.0 "
                                "before decision 40 write; try the program that wrote it, or a new --output");
  EXPECT_NE(problem_of("3").find("got form 3, which later versions write"), std::string::npos);
}

}  // namespace
}  // namespace collimate::flow
