#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/plan/inputs/cluster.h"
#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/median.h"
#include "collimate/plan/inputs/workload.h"

namespace collimate::plan {
namespace {

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Median, IsInTheMiddle) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({3, 1, 2, 10}), 2.5);
  EXPECT_EQ(median_of({}), 0);
}

TEST(Constants, AreFoundByMemberAndByName) {
  for (const ConstantInfo& info : constant_table()) {
    EXPECT_EQ(&constant_info(info.member), &info);
    EXPECT_EQ(&constant_info(info.name, "here"), &info);
  }
  EXPECT_THAT(error_of([] { constant_info("phase_second", "here"); }), testing::EndsWith("try 'phase_seconds'"));
  const ConstantInfo& phase = constant_info("phase_seconds", "here");
  EXPECT_EQ(limits_text(phase), "a number from 0 to 600 s");
  EXPECT_TRUE(within_limits(phase, 600));
  EXPECT_FALSE(within_limits(phase, 601));
  EXPECT_FALSE(within_limits(phase, std::nan("")));
}

TEST(Cluster, TextGoesRoundAndBack) {
  for (const char* text : {"16x8xA100-80", "1x4xH100-80+2x8xH20-96", "2x8xH800-80@1600Gb", "1x2xcpu"})
    EXPECT_EQ(cluster_text(parse_cluster(text)), text);
  EXPECT_EQ(cluster_text(parse_cluster("128xa100")), "16x8xA100-80");
  EXPECT_EQ(cluster_text(parse_cluster("4 x H100")), "1x4xH100-80");
  EXPECT_EQ(cluster_text(parse_cluster("64xGB200")), "16x4xGB200-186");
}

TEST(Cluster, DevicesAreNumberedGroupByGroup) {
  const Cluster cluster = parse_cluster("1x8xH100+2x8xH20");
  EXPECT_EQ(cluster.devices(), 24);
  EXPECT_EQ(cluster.group_of(7).gpu.name, "H100-80");
  EXPECT_EQ(cluster.group_of(8).gpu.name, "H20-96");
  EXPECT_THROW(cluster.group_of(24), std::logic_error);
}

TEST(Cluster, ANetworkIsSharedByTheDevicesOfANode) {
  EXPECT_EQ(parse_cluster("2x8xA100@200Gb").groups[0].gpu.network_bytes_per_second, 25e9 / 8);
}

TEST(Cluster, WrongTextsAreNamed) {
  EXPECT_THAT(error_of([] { parse_cluster("16x8xA10-80"); }), testing::EndsWith("got 'A10-80'; try 'A100-80'"));
  EXPECT_EQ(error_of([] { parse_cluster("100xA100-80"); }),
            "[cluster] expected whole nodes of 8 A100-80, got 100 devices; try 13x8xA100-80, or 1x100xA100-80 for one "
            "node of 100");
  for (const char* text : {"0x8xA100", "", "8xA100+", "2x3x4xA100", "2x8xA100@fast", "99999x99999xH100"})
    EXPECT_NE(error_of([&] { parse_cluster(text); }), "") << text;
}

TEST(Gpu, AMemoryMayBeLeftOut) {
  EXPECT_EQ(find_gpu("A100").name, "A100-80");
  EXPECT_EQ(find_gpu("a100-40gb").name, "A100-40");
  EXPECT_EQ(find_gpu("V100").name, "V100-32");
  for (const Gpu& gpu : gpus()) EXPECT_FALSE(gpu.source.empty());
}

TEST(Lengths, MeansAndQuantiles) {
  EXPECT_EQ(Lengths::fixed(512).mean(), 512);
  const Lengths bars = Lengths::parse("histogram:100=3,500=1", "w");
  EXPECT_EQ(bars.mean(), 200);
  EXPECT_EQ(bars.quantile(0.5), 100);
  EXPECT_EQ(bars.quantile(0.9), 500);
  const Lengths wide = Lengths::log_normal(100, 1.0, 1e9);
  EXPECT_NEAR(wide.quantile(0.5), 100, 1);
  EXPECT_NEAR(wide.mean(), 100 * std::exp(0.5), 3);
  EXPECT_NEAR(wide.quantile(0.8413), 100 * std::exp(1.0), 8);
}

TEST(Lengths, ACapIsTheLargest) {
  const Lengths lengths = Lengths::capped_mean(800, 0.9, 2048);
  EXPECT_NEAR(lengths.mean(), 800, 1);
  EXPECT_EQ(lengths.largest(), 2048);
  const std::vector<double> nine = lengths.sample(9);
  EXPECT_EQ(nine.size(), 9U);
  EXPECT_TRUE(std::is_sorted(nine.begin(), nine.end()));
  EXPECT_TRUE(Lengths::capped_mean(2048, 0.9, 2048).constant());
}

// Independent lengths: of rows of 300 and of 500 tokens, as many each.
TEST(Workload, RowsHaveTheirMoments) {
  Workload workload;
  workload.prompt = Lengths::histogram({{100, 1}, {300, 1}});
  workload.completion = Lengths::fixed(200);
  EXPECT_DOUBLE_EQ(workload.row_tokens().mean, 400);
  EXPECT_DOUBLE_EQ(workload.row_tokens().square, (300.0 * 300 + 500.0 * 500) / 2);
  workload.completion = Lengths::histogram({{100, 3}, {500, 1}});
  const double squares = (3 * 200.0 * 200 + 600.0 * 600 + 3 * 400.0 * 400 + 800.0 * 800) / 8;
  EXPECT_DOUBLE_EQ(workload.row_tokens().square, squares);
}

TEST(Flow, AnUnknownNameGetsTheNearest) {
  EXPECT_EQ(flow_of("grpo").name, "grpo");
  EXPECT_EQ(error_of([] { flow_of("pppo"); }),
            "[--flow] expected a graph's .json file or one of ppo, grpo, got 'pppo'; try 'ppo'");
}

TEST(Workload, Texts) {
  const Workload workload = parse_workload("grpo,2048,512xmean:800,0.9,4096");
  EXPECT_EQ(workload.rows, 2048);
  EXPECT_EQ(workload.prompt.mean(), 512);
  EXPECT_EQ(workload.longest(), 512 + 4096);
  EXPECT_THAT(error_of([] { parse_workload("pppo,8,8x8"); }), testing::EndsWith("try 'ppo'"));
  for (const char* text : {"ppo", "ppo,0,8x8", "ppo,8,8", "ppo,8,8x", "ppo,8,-1x8", "ppo,8,8xlognormal:1,2"})
    EXPECT_NE(error_of([&] { parse_workload(text); }), "") << text;
}

}  // namespace
}  // namespace collimate::plan
