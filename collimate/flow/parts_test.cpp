#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
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

// Splits the first rows of an iteration.
std::vector<Batch> split(const DistActor& actor, const Batch& rows, int64_t group_size) {
  std::vector<int64_t> numbers(static_cast<size_t>(rows.rows()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return actor.split(rows, numbers, group_size);
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
  std::vector<Batch> parts = split(actor, numbered({10, 11, 12, 13, 14}), 1);
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
  const std::vector<Batch> parts = split(actor, numbered({1, 2, 3, 4}), 1);
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
  const std::vector<Batch> parts = split(actor, numbered({1, 2, 3}), 1);
  ASSERT_EQ(parts.size(), 8U);
  for (const Batch& part : parts) EXPECT_EQ(uids(part), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(actor.collecting(), (std::vector<int>{2}));
  EXPECT_EQ(actor.reporting(), (std::vector<int>{2}));
}

// Groups of four of which 3, 1, 4 and 2 rows are left. A function of rows gets five on each rank.
TEST(DistActor, WhatIsLeftOfAGroupStaysTogether) {
  graph::FunctionSpec spec;
  graph::Layout layout;
  layout.dp = 2;
  const std::vector<int64_t> numbers = {0, 1, 3, 6, 8, 9, 10, 11, 13, 14};
  const Batch rows = numbered(numbers);
  const std::vector<Batch> any = DistActor(spec, layout, {0, 1}).split(rows, numbers, 4);
  EXPECT_EQ(uids(any[0]), (std::vector<int64_t>{0, 1, 3, 6, 8}));
  spec.granularity = graph::Granularity::kGroup;
  const std::vector<Batch> parts = DistActor(spec, layout, {0, 1}).split(rows, numbers, 4);
  EXPECT_EQ(uids(parts[0]), (std::vector<int64_t>{0, 1, 3, 6}));
  EXPECT_EQ(uids(parts[1]), (std::vector<int64_t>{8, 9, 10, 11, 13, 14}));
  layout.dp = 5;
  const std::vector<Batch> few = DistActor(spec, layout, {0, 1, 2, 3, 4}).split(rows, numbers, 4);
  EXPECT_TRUE(few[0].empty());
  EXPECT_EQ(uids(few[1]), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(uids(few[4]), (std::vector<int64_t>{13, 14}));
}

TEST(DistActor, PairsWithoutTokensStayTogether) {
  graph::Layout layout;
  layout.dp = 2;
  const std::vector<Batch> parts =
      DistActor(graph::FunctionSpec(), layout, {0, 1}).split_update(numbered({1, 2, 3, 4, 5, 6}), 2);
  EXPECT_EQ(uids(parts[0]), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(uids(parts[1]), (std::vector<int64_t>{3, 4, 5, 6}));
}

TEST(DistActor, GroupsStayTogetherAndBroadcastRepeats) {
  graph::FunctionSpec spec;
  spec.granularity = graph::Granularity::kGroup;
  graph::Layout layout;
  layout.dp = 2;
  DistActor actor(spec, layout, {0, 1});
  std::vector<Batch> parts = split(actor, numbered({0, 1, 2, 3, 4, 5}), 2);
  EXPECT_EQ(uids(parts[0]), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(uids(parts[1]), (std::vector<int64_t>{2, 3, 4, 5}));
  spec.dispatch = graph::Dispatch::kBroadcast;
  DistActor all(spec, layout, {0, 1});
  EXPECT_EQ(uids(split(all, numbered({7, 8}), 2)[1]), (std::vector<int64_t>{7, 8}));
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

TEST(Metrics, ValuesThatAreNotFiniteComeThroughText) {
  const std::vector<Metric> metrics = {{"high", INFINITY}, {"low", -INFINITY}, {"nan", NAN}, {"mean", 1.5}};
  const auto read = nlohmann::json::parse(nlohmann::json(metrics).dump()).get<std::vector<Metric>>();
  EXPECT_EQ(read.at(0).value, INFINITY);
  EXPECT_EQ(read.at(1).value, -INFINITY);
  EXPECT_TRUE(std::isnan(read.at(2).value));
  EXPECT_EQ(read.at(3).value, 1.5);
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

}  // namespace
}  // namespace collimate::flow
