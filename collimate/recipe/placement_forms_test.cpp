#include "collimate/recipe/placement_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "tests/support/base/error_of.h"

namespace collimate::recipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The placement of a PPO run with a reward model on so many devices.
graph::Placement placement_of(const std::string& placement, int64_t devices, const std::string& more = "") {
  Config config;
  const std::string text = "recipe: ppo\nmodels: {policy: {path: /nowhere}, reward: {path: /elsewhere}}\n" + more +
                           "\nplacement: " + placement + "\ndevices: " + std::to_string(devices) + "\n";
  base::apply(base::parse_config(text, "run.yaml"), config);
  Plan plan = make_plan(config, module_registry());
  return make_placement(config, plan);
}

std::vector<int> devices_of(const graph::Placement& placement, const std::string& model) {
  return placement.group_of(model)->devices;
}

TEST(PlacementForms, SeparationTrainsOnAShareOfTheDevices) {
  for (const auto& [text, trained] :
       std::map<std::string, int>{{"separation", 2}, {"{separation: 0.25}", 1}, {"{separation: 3}", 3}}) {
    const graph::Placement made = placement_of(text, 4);
    for (const char* model : {"policy_trainer", "value"})
      EXPECT_EQ(std::ssize(devices_of(made, model)), trained) << text;
    for (const char* model : {"policy", "reference", "reward"})
      EXPECT_EQ(std::ssize(devices_of(made, model)), 4 - trained) << text;
    EXPECT_EQ(made.layout("policy_trainer", "train").zero, trained > 1 ? 1 : 0) << text;
  }
  EXPECT_EQ(placement_of("separation", 4, "zero: 2").layout("value", "train").zero, 2);
}

TEST(PlacementForms, InterleavingHasFrozenModelsSideBySide) {
  const graph::Placement made = placement_of("interleaving", 4);
  EXPECT_THAT(devices_of(made, "reference"), ElementsAre(0, 1));
  EXPECT_THAT(devices_of(made, "reward"), ElementsAre(2, 3));
  EXPECT_THAT(devices_of(made, "policy_trainer"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(made.layout("policy_trainer", "train").zero, 1);
}

TEST(PlacementForms, WhatCannotBeIsRefused) {
  const auto error = [](const std::string& text, int64_t devices, const std::string& more = "") {
    return base::message_of([&] { placement_of(text, devices, more); });
  };
  EXPECT_THAT(error("separation", 1), HasSubstr("[devices] expected at least 2 for placement: separation, got 1"));
  for (const char* wrong : {"{separation: 0}", "{separation: 4}", "{separation: 1.5}", "{separation: half}"})
    EXPECT_THAT(error(wrong, 4), HasSubstr("[placement.separation] expected the share of devices that train")) << wrong;
  EXPECT_THAT(error("interleaving", 1), HasSubstr("[placement interleaving] expected at least 2 devices, got 1"));
  EXPECT_THAT(error("seperation", 2), HasSubstr("try 'separation'"));
  EXPECT_THAT(error("separation", 2, "tp: 2"), HasSubstr("tp in the placement's layouts"));
}

}  // namespace
}  // namespace collimate::recipe
