#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collimate/plan/inputs/backends.h"
#include "collimate/plan/inputs/cluster.h"
#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/median.h"
#include "collimate/plan/inputs/workload.h"
#include "tests/support/base/error_of.h"

namespace collimate::plan {
namespace {

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
  EXPECT_THAT(base::message_of([] { constant_info("phase_second", "here"); }),
              testing::EndsWith("try 'phase_seconds'"));
  const ConstantInfo& phase = constant_info("phase_seconds", "here");
  EXPECT_EQ(limits_text(phase), "a number from 0 to 600 s");
  EXPECT_TRUE(within_limits(phase, 600));
  EXPECT_FALSE(within_limits(phase, 601));
  EXPECT_FALSE(within_limits(phase, std::nan("")));
}

TEST(Backends, SayEachConstantOnceWithinItsLimits) {
  for (const Backend& backend : backends()) {
    EXPECT_FALSE(backend.source.empty());
    for (const auto& [member, value] : backend.values) {
      EXPECT_TRUE(within_limits(constant_info(member), value)) << backend.name << " " << constant_info(member).name;
      EXPECT_EQ(constants_of(backend.name).*member, value) << backend.name << " has it twice";
    }
  }
  EXPECT_EQ(base::message_of([] { find_backend("ver"); }).substr(0, 9), "[backend]");
  EXPECT_THAT(base::message_of([] { find_backend("ver"); }), testing::EndsWith("try 'verl'"));
}

TEST(Cluster, TextGoesRoundAndBack) {
  for (const char* text : {"16x8xA100-80", "1x4xH100-80+2x8xH20-96", "2x8xH800-80@1600Gb", "1x2xcpu"})
    EXPECT_EQ(cluster_text(parse_cluster(text)), text);
  EXPECT_EQ(cluster_text(parse_cluster("128xa100")), "16x8xA100-80");
  EXPECT_EQ(cluster_text(parse_cluster("4 x H100")), "1x4xH100-80");
  EXPECT_EQ(cluster_text(parse_cluster("64xGB200")), "16x4xGB200-186");
}

TEST(Cluster, AListOfCommasIsJoined) {
  EXPECT_THAT(base::message_of([] { parse_cluster("4xA100, 4xH100"); }),
              testing::EndsWith("got '4xA100, 4xH100'; try 4xA100-80+4xH100-80"));
}

TEST(Cluster, DevicesAreNumberedGroupByGroup) {
  const Cluster cluster = parse_cluster("1x8xH100+2x8xH20");
  EXPECT_EQ(cluster.devices(), 24);
  EXPECT_EQ(cluster.group_of(7).gpu.name, "H100-80");
  EXPECT_EQ(cluster.group_of(8).gpu.name, "H20-96");
  EXPECT_THROW(cluster.group_of(24), std::logic_error);
}

TEST(Cluster, NeighboursOfOneKindAreOne) {
  const std::pair<const char*, const char*> cases[] = {{"4xA100-80+4xA100-80", "1x8xA100-80"},
                                                       {"8xH100+8xH100", "2x8xH100-80"},
                                                       {"1x4xA100-80+1x4xA100-80", "2x4xA100-80"},
                                                       {"8xA100+4xA100", "1x8xA100-80+1x4xA100-80"},
                                                       {"4xA100+2xH100+4xA100", "1x4xA100-80+1x2xH100-80+1x4xA100-80"},
                                                       {"8xH100+8xH100@400Gb", "1x8xH100-80+1x8xH100-80@400Gb"}};
  for (const auto& [text, read] : cases) EXPECT_EQ(cluster_text(parse_cluster(text)), read) << text;
}

TEST(Cluster, ARangeOfOneKindIsThatKind) {
  const Cluster cluster = parse_cluster("1x8xH100+2x8xA100-40");
  EXPECT_EQ(cluster.borders(), std::vector<int>{8});
  for (const DeviceRange range : {DeviceRange{0, 8}, DeviceRange{3, 2}}) {
    EXPECT_EQ(cluster.kinds(range).per_node, 8);
    EXPECT_EQ(cluster.gpu(cluster.kinds(range)), DeviceKinds().find("H100-80"));
  }
  EXPECT_EQ(cluster.gpu(cluster.kinds(std::vector<int>{9, 20})), DeviceKinds().find("A100-40"));
  EXPECT_TRUE(cluster.kinds(DeviceRange{}).groups.empty());
}

TEST(Cluster, DevicesInStepCountOnTheLeastOfEachNumber) {
  const Cluster cluster = parse_cluster("1x8xH20+1x8xA100-80+1x4xH100");
  const DeviceKind two = cluster.gpu(cluster.kinds(DeviceRange{0, 16}));
  EXPECT_EQ(two.name, "H20-96+A100-80");
  EXPECT_EQ(two.flops, 148e12);
  EXPECT_EQ(two.fp8_flops, 0);
  EXPECT_EQ(two.memory_bytes, 80e9);
  EXPECT_EQ(two.memory_bytes_per_second, 2039e9);
  EXPECT_EQ(two.link_bytes_per_second, 300e9);
  EXPECT_EQ(two.host_bytes_per_second, 24e9);
  EXPECT_EQ(two.network_bytes_per_second, 25e9);
  const DeviceKind apart = cluster.gpu(cluster.kinds(std::vector<int>{0, 16}));
  EXPECT_EQ(apart.flops, 148e12);
  EXPECT_EQ(apart.memory_bytes, 80e9);
  EXPECT_EQ(apart.memory_bytes_per_second, 3350e9);
}

// Ranks of so many neighbours never lie on two nodes, wherever the range begins.
TEST(Cluster, NodesOfSeveralKindsAreAsLargeAsTheirRuns) {
  const Cluster cluster = parse_cluster("2x8xH100+2x4xA100-40");
  EXPECT_EQ(cluster.kinds(DeviceRange{0, 16}).per_node, 8);
  EXPECT_EQ(cluster.kinds(DeviceRange{0, 24}).per_node, 4);
  EXPECT_EQ(cluster.kinds(DeviceRange{14, 8}).per_node, 2);
  EXPECT_EQ(cluster.kinds(DeviceRange{13, 8}).per_node, 1);
  EXPECT_EQ(cluster.kinds(std::vector<int>{0, 1, 16, 17, 18, 19}).per_node, 2);
}

TEST(Cluster, GrowsInProportion) {
  const Cluster cluster = parse_cluster("1x8xA100-80+2x8xH100");
  EXPECT_EQ(cluster_text(with_devices(cluster, 48).value()), "2x8xA100-80+4x8xH100-80");
  EXPECT_EQ(cluster_text(with_devices(cluster, 12).value()), "1x4xA100-80+1x8xH100-80");
  for (const int devices : {1, 25, 30}) EXPECT_FALSE(with_devices(cluster, devices)) << devices;
}

TEST(Cluster, TextsNameKindsWhereThereAreSeveral) {
  const Cluster one = parse_cluster("2x8xH100"), two = parse_cluster("1x8xA100-80+2x8xH100");
  const std::vector<int> devices = {0, 1, 8};
  EXPECT_EQ(count_text(one, devices), "3");
  EXPECT_EQ(count_text(two, devices), "2 A100-80 + 1 H100-80");
  EXPECT_EQ(kind_text(one, 8), "");
  EXPECT_EQ(kind_text(two, 8), "H100-80");
}

TEST(Cluster, ANetworkIsSharedByTheDevicesOfANode) {
  EXPECT_EQ(parse_cluster("2x8xA100@200Gb").groups[0].gpu.network_bytes_per_second, 25e9 / 8);
}

TEST(Cluster, WrongTextsAreNamed) {
  EXPECT_THAT(base::message_of([] { parse_cluster("16x8xA10-80"); }),
              testing::EndsWith("got '16x8xA10-80'; try 16x8xA100-80"));
  EXPECT_EQ(base::message_of([] { parse_cluster("100xA100-80"); }),
            "[cluster] expected whole nodes of 8 A100-80, got 100 devices; try 13x8xA100-80, or 1x100xA100-80 for one "
            "node of 100");
  for (const char* text : {"0x8xA100", "", "8xA100+", "2x3x4xA100", "2x8xA100@fast", "99999x99999xH100"})
    EXPECT_NE(base::message_of([&] { parse_cluster(text); }), "") << text;
}

TEST(DeviceKind, AMemoryMayBeLeftOut) {
  EXPECT_EQ(DeviceKinds().find("A100").name, "A100-80");
  EXPECT_EQ(DeviceKinds().find("a100-40gb").name, "A100-40");
  EXPECT_EQ(DeviceKinds().find("V100").name, "V100-32");
  for (const DeviceKind& gpu : known_device_kinds()) EXPECT_FALSE(gpu.source.empty());
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

TEST(Device, NumbersAndKindsAreTheUsers) {
  DeviceKinds kinds;
  kinds.set("X9=A100-80");
  kinds.set("x9.memory_bytes=64e9");
  kinds.set("X9.per_node=4");
  kinds.set("X9.network_bytes_per_second=5e9");
  const Cluster cluster = parse_cluster("8xX9", kinds);
  EXPECT_EQ(cluster_text(cluster), "2x4xX9");
  const DeviceKind& gpu = cluster.groups[0].gpu;
  EXPECT_EQ(gpu.memory_bytes, 64e9);
  EXPECT_EQ(gpu.network_bytes_per_second, 5e9);
  EXPECT_EQ(gpu.flops, DeviceKinds().find("A100-80").flops);
  EXPECT_EQ(DeviceKinds().find("A100-80").memory_bytes, 80e9);
  EXPECT_FALSE(gpu.price_given);
  kinds.set("X9.dollars_per_hour=3");
  EXPECT_TRUE(kinds.find("X9").price_given);
}

// A request's kinds are its own.
TEST(Device, TwoRequestsDoNotInfluenceOneAnother) {
  DeviceKinds slow, fast;
  slow.set("A100-80.flops=1e14");
  fast.set("A100-80.flops=9e14");
  fast.set("X9=A100-80");
  EXPECT_EQ(parse_cluster("8xA100-80", slow).groups[0].gpu.flops, 1e14);
  EXPECT_EQ(parse_cluster("8xX9", fast).groups[0].gpu.flops, 9e14);
  EXPECT_THAT(base::message_of([&] { parse_cluster("8xX9", slow); }), testing::HasSubstr("with a kind of"));
  EXPECT_EQ(parse_cluster("8xA100-80").groups[0].gpu.flops, DeviceKinds().find("A100-80").flops);
}

TEST(Device, WrongOnesGetTheNearest) {
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("A100-80.memory_byte=64e9"); }),
              testing::EndsWith("try 'memory_bytes'"));
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("A200-80.memory_bytes=64e9"); }),
              testing::EndsWith("try 'A100-80'"));
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("A100-80.flops=fast"); }),
              testing::StartsWith("[--device A100-80.flops] expected a number from 1000000 to"));
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("A100-80.per_node=1.5"); }),
              testing::HasSubstr("whole devices, got '1.5'"));
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("H100=A100-80"); }), testing::HasSubstr("which there is"));
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("4xY=A100-80"); }), testing::HasSubstr("a new kind's name"));
  EXPECT_THAT(base::message_of([] { DeviceKinds().set("A100-80"); }),
              testing::HasSubstr("KIND.KEY=NUMBER or NEW=KIND"));
}

TEST(Constants, NcclsAreNamed) {
  Constants constants = constants_of("");
  set_constant(constants, "nccl.tree_ll128.network_seconds=3e-6");
  EXPECT_EQ(constants.nccl[Constants::nccl_index(Algorithm::kTree, Protocol::kLl128)].network_seconds, 3e-6);
  EXPECT_THAT(base::message_of([&] { set_constant(constants, "nccl.tree_ll128.network_second=3e-6"); }),
              testing::EndsWith("try 'nccl.tree_ll128.network_seconds'"));
  EXPECT_THAT(base::message_of([&] { set_constant(constants, "nccl.ring_ll.efficiency=2"); }),
              testing::HasSubstr("a number from 0.01 to 1, got '2'"));
}

TEST(Flow, AnUnknownNameGetsTheNearest) {
  EXPECT_EQ(flow_of("grpo").name, "grpo");
  EXPECT_EQ(base::message_of([] { flow_of("pppo"); }),
            "[--flow] expected a graph's .json file or one of ppo, grpo, got 'pppo'; try 'ppo'");
}

TEST(Workload, TheLongestRowIsOfTheLongestParts) {
  Workload workload;
  workload.prompt = Lengths::fixed(512);
  workload.completion = Lengths::capped_mean(800, 0.9, 4096);
  EXPECT_EQ(workload.longest(), 512 + 4096);
}

TEST(Lengths, WrongTextsAreNamed) {
  for (const char* text : {"", "-1", "8x8", "lognormal:1,2", "mean:800,0.9,700", "histogram:8", "uniform:1,2,3"})
    EXPECT_THAT(base::message_of([&] { Lengths::parse(text, "w"); }), testing::StartsWith("[w] expected tokens"))
        << text;
}

}  // namespace
}  // namespace collimate::plan
