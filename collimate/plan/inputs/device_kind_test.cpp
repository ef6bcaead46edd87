#include "collimate/plan/inputs/device_kind.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

namespace collimate::plan {
namespace {

double value_of(const DeviceKind& kind, const DeviceKey& key) {
  return std::visit([&](auto member) { return static_cast<double>(kind.*member); }, key.member);
}

TEST(DeviceKeys, EachIsOfANumberOfItsOwn) {
  DeviceKinds kinds;
  kinds.set("EachKey=A100-80");
  std::set<std::string> names;
  for (const DeviceKey& key : device_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    for (const DeviceKind& kind : known_device_kinds()) {
      EXPECT_GE(value_of(kind, key), key.low) << kind.name << " " << key.name;
      EXPECT_LE(value_of(kind, key), key.high) << kind.name << " " << key.name;
    }
    const DeviceKind before = kinds.find("EachKey");
    kinds.set(fmt::format("EachKey.{}={}", key.name, key.high));
    for (const DeviceKey& other : device_keys())
      EXPECT_EQ(value_of(kinds.find("EachKey"), other), other.name == key.name ? key.high : value_of(before, other))
          << other.name << " after " << key.name;
  }
}

// This holds of every number, whichever kind comes first.
TEST(DeviceKeys, DevicesInStepCountOnTheWorseNumber) {
  DeviceKinds kinds;
  kinds.set("StepLow=A100-80");
  kinds.set("StepHigh=A100-80");
  for (const DeviceKey& key : device_keys()) {
    kinds.set(fmt::format("StepLow.{}={}", key.name, key.low));
    kinds.set(fmt::format("StepHigh.{}={}", key.name, key.high));
  }
  const DeviceKind low = kinds.find("StepLow"), high = kinds.find("StepHigh");
  for (const DeviceKind& both : {in_step(low, high), in_step(high, low)})
    for (const DeviceKey& key : device_keys())
      EXPECT_EQ(value_of(both, key), key.in_step == InStep::kLesser ? key.low : key.high) << key.name;
  EXPECT_EQ(in_step(low, high).weight_bytes, high.weight_bytes);
  EXPECT_EQ(in_step(low, high).flops, low.flops);
}

TEST(DeviceKinds, OneMadeOfACpuIsNoGpu) {
  DeviceKinds kinds;
  kinds.set("Slow=cpu");
  kinds.set("Slow.flops=1e10");
  EXPECT_TRUE(kinds.find("Slow").cpu);
  EXPECT_TRUE(in_step(kinds.find("Slow"), kinds.find("cpu")).cpu);
  EXPECT_FALSE(DeviceKinds().find("A100-80").cpu);
}

TEST(DeviceKeys, TheDocumentationHasThem) {
  std::ifstream file(COLLIMATE_SOURCE_DIR "/docs/planner.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string table = "| key | unit | in step | what |\n|---|---|---|---|\n";
  for (const DeviceKey& key : device_keys())
    table += fmt::format("| `{}` | {} | {} | {} |\n", key.name, key.unit,
                         key.in_step == InStep::kLesser ? "lesser" : "greater", key.help);
  EXPECT_THAT(text, testing::HasSubstr("\n" + table + "\n"));
}

}  // namespace
}  // namespace collimate::plan
