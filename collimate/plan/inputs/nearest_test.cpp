// Wrong inputs get the nearest that is right; what is suggested is right itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/plan/inputs/cluster.h"
#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/lengths.h"

namespace collimate::plan {
namespace {

template <class Read>
std::string remedy_of(const Read& read) {
  try {
    read();
  } catch (const base::InputError& error) {
    const std::string text = error.what(), mark = "; try ";
    const size_t at = text.find(mark);
    return at == std::string::npos ? "none" : text.substr(at + mark.size());
  }
  return "no error";
}

TEST(Nearest, ClustersKeepTheirNumbers) {
  const std::pair<const char*, const char*> cases[] = {{"0xA100", "1xA100-80"},
                                                       {"-8xA100", "8xA100-80"},
                                                       {"8A100", "8xA100-80"},
                                                       {"A100x8", "8xA100-80"},
                                                       {"16x8xA10-80", "16x8xA100-80"},
                                                       {"12xA200", "16xA100-80"},
                                                       {"1x2x3xA100", "2x3xA100-80"},
                                                       {"999999x8xA100", "16384x8xA100-80"},
                                                       {"2x8xH200@fast", "2x8xH200-141@400Gb"},
                                                       {"2x8xH200@200", "2x8xH200-141@200Gb"}};
  for (const auto& [text, near] : cases) {
    EXPECT_EQ(remedy_of([&] { parse_cluster(text); }), near) << text;
    EXPECT_GT(parse_cluster(near).devices(), 0) << near;
  }
  for (const char* text : {"8", "8x"})
    EXPECT_EQ(remedy_of([&] { parse_cluster(text); }), "8xA100-80, or 2xcpu for processors") << text;
}

TEST(Nearest, LengthsKeepTheirNumbers) {
  const std::pair<const char*, const char*> cases[] = {{"-512", "512"},
                                                       {"0", "512"},
                                                       {"long", "512"},
                                                       {"8x8", "8"},
                                                       {"lognorml:400,1,900", "lognormal:400,1,900"},
                                                       {"mean:900", "mean:900,0.8,3600"},
                                                       {"mean:900,1,800", "mean:900,1,1800"},
                                                       {"mean:900,0,4096", "mean:900,0.8,4096"},
                                                       {"histogram:8", "histogram:256=1,1024=2"}};
  for (const auto& [text, near] : cases) {
    EXPECT_EQ(remedy_of([&] { Lengths::parse(text, "w"); }), near) << text;
    EXPECT_GT(Lengths::parse(near, "w").mean(), 0) << near;
  }
}

TEST(Nearest, NumbersAreBroughtWithinTheirLimits) {
  Constants constants = constants_of("");
  const auto constant = [&](const char* text) { return remedy_of([&] { set_constant(constants, text); }); };
  EXPECT_EQ(constant("update_seconds=-1"), "update_seconds=0");
  EXPECT_EQ(constant("update_seconds"), "update_seconds=0.3");
  EXPECT_EQ(constant("nccl.ring_ll.efficiency=2"), "nccl.ring_ll.efficiency=1");
  const auto device = [&](const char* text) { return remedy_of([&] { DeviceKinds().set(text); }); };
  EXPECT_EQ(device("A100-80.memory_bytes=1"), "1000000");
  EXPECT_EQ(device("A100-80.memory_bytes=much"), "80000000000");
  EXPECT_EQ(device("A100-80.per_node=1.6"), "2");
  EXPECT_EQ(device("A100-80.memory=1e9"), "'memory_bytes'");
}

TEST(Nearest, BackEndsAreSuggestedHoweverFar) {
  EXPECT_EQ(remedy_of([] { constants_of("nemo"); }), "'nemo-rl'");
  EXPECT_NE(remedy_of([] { constants_of("quite other"); }), "none");
}

}  // namespace
}  // namespace collimate::plan
