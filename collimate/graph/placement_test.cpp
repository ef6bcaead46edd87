#include "collimate/graph/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/graph/forms.h"
#include "tests/support/base/error_of.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

std::string error_of(const Graph& graph, const std::string& yaml) {
  return base::message_of([&] { validate(graph, parse_placement(yaml, "placement")); });
}

const char* const kTwoDevices = R"(
devices: {count: 2}
groups:
  main: {devices: [0], models: [policy, value, trainer]}
  side: {devices: [1], models: [reference, reward]}
layouts:
  trainer:
    train: {dp: 1, zero: 1, micro_batch: 4}
residency: {reference: swap}
hosts: {gae: 2}
staleness: 1
)";

TEST(Placement, YamlAndJsonAreOneSchemaBothWays) {
  Placement placement = parse_placement(kTwoDevices);
  EXPECT_EQ(parse_placement(yaml_text(placement)), placement);
  EXPECT_EQ(parse_placement(json_text(placement)), placement);
  EXPECT_EQ(placement.layout("trainer", "train").micro_batch, 4);
  EXPECT_EQ(placement.residency.at("reference"), Residency::kSwap);
  validate(samples::ppo(), placement);
}

TEST(Placement, LayoutsSayWhatContextRanksExchange) {
  Placement placement = flattening(samples::ppo(), 2);
  Layout& layout = placement.layouts["trainer"]["train"];
  layout.cp = 2;
  EXPECT_EQ(json_text(placement).find("cp_kind"), std::string::npos);
  layout.cp_kind = shape::ContextKind::kUlysses;
  EXPECT_EQ(parse_placement(yaml_text(placement)), placement);
  EXPECT_EQ(parse_placement(json_text(placement)), placement);
  validate(samples::ppo(), placement);
  const auto error = [](const std::string& train) {
    std::string yaml = "devices: {count: 2}\ngroups: {all: {devices: 2, models: [policy, value, trainer, reference, ";
    yaml += "reward]}}\nlayouts: {trainer: {train: ";
    yaml += train;
    return error_of(samples::ppo(), yaml + "}}");
  };
  EXPECT_EQ(error("{cp: 2, cp_kind: ulysses}"), "");
  EXPECT_EQ(error("{cp_kind: ulysses}"),
            "[placement.layouts.trainer.train.cp_kind] expected it beside a cp above 1, got ulysses; try cp: 2, or "
            "leaving it out");
  EXPECT_EQ(error("{cp: 2, cp_kind: ring}"),
            "[placement.layouts.trainer.train.cp_kind] expected cp_kind to be one of gather, ulysses, got 'ring'");
}

// Layers of stages are in a placement's text where they are said.
TEST(Placement, LayersOfStagesAreOneForEachStage) {
  const auto text = [](const std::string& layout) {
    return "groups: {all: {devices: 4, models: [policy, value, trainer, reference, reward]}}\nlayouts: {policy: "
           "{generate: {" +
           layout + "}}}";
  };
  const Placement placement = parse_placement(text("pp: 4, stages: [5, 7, 6, 6]"));
  EXPECT_THAT(placement.layout("policy", "generate").stages, testing::ElementsAre(5, 7, 6, 6));
  EXPECT_EQ(parse_placement(yaml_text(placement)), placement);
  EXPECT_THAT(yaml_text(parse_placement(text("pp: 4"))), testing::Not(testing::HasSubstr("stages")));
  validate(samples::ppo(), placement);
  EXPECT_EQ(
      error_of(samples::ppo(), text("pp: 2, stages: [5, 7, 6]")),
      "[placement.layouts.policy.generate.stages] expected the blocks of each of the 2 stages that pp says, got [5, "
      "7, 6]; try pp: 3");
  EXPECT_EQ(error_of(samples::ppo(), text("pp: 2, stages: [12, 0]")),
            "[placement.layouts.policy.generate.stages] expected at least 1 block in each stage, got [12, 0]");
  const Placement runs = parse_placement(text("pp: 2, virtual_stages: 2, stages: [5, 7, 6, 6]"));
  EXPECT_EQ(runs.layout("policy", "generate").virtual_stages, 2);
  EXPECT_EQ(parse_placement(yaml_text(runs)), runs);
  EXPECT_THAT(yaml_text(placement), testing::Not(testing::HasSubstr("virtual")));
  validate(samples::ppo(), runs);
  EXPECT_EQ(error_of(samples::ppo(), text("virtual_stages: 2")),
            "[placement.layouts.policy.generate.virtual_stages] expected 1 of a layout with pp 1, got 2; try pp: 2, or "
            "leaving it out");
  EXPECT_THAT(error_of(samples::ppo(), text("pp: 2, virtual_stages: 0")),
              testing::HasSubstr("expected at least 1, got 0"));
  EXPECT_THAT(error_of(samples::ppo(), text("pp: 2, virtual_stages: 2, stages: [12, 12]")),
              testing::HasSubstr("each of the 4 stages that pp times virtual_stages says, got [12, 12]"));
}

TEST(Placement, ReplicasFollowDevicesAndLayouts) {
  Graph graph = samples::ppo();
  Placement placement = flattening(graph, 4);
  placement.layouts["policy"]["generate"].tp = 2;
  placement.hosts["gae"] = 3;
  validate(graph, placement);
  EXPECT_EQ(replicas(graph, placement, 0), (std::vector<Replica>{{0, 1}, {2, 3}}));
  EXPECT_EQ(replicas(graph, placement, 1).size(), 4u);
  EXPECT_EQ(replicas(graph, placement, 4), (std::vector<Replica>{{4}}));           // gae: iteration-granular
  EXPECT_EQ(replicas(graph, placement, 5), (std::vector<Replica>{{0, 1, 2, 3}}));  // train: dp inside
  EXPECT_EQ(worker_count(graph, placement), 7);
}

TEST(Placement, CompaniesAreTheModelsOfEachDeviceOnce) {
  const auto of = [](const std::string& groups) {
    std::vector<std::pair<int, std::set<std::string>>> found;
    for (const Company& company : companies(samples::ppo(), parse_placement(groups)))
      found.emplace_back(company.device, company.models);
    return found;
  };
  const std::set<std::string> trained = {"policy", "trainer"}, all = {"policy", "reference", "trainer"};
  EXPECT_THAT(
      of("devices: {count: 3000}\ngroups: {a: {devices: [1, 2], models: [policy, trainer]}, "
         "b: {devices: [2, 4, 2999], models: [reference]}}"),
      testing::ElementsAre(std::pair(1, trained), std::pair(2, all), std::pair(4, std::set<std::string>{"reference"})));
  EXPECT_THAT(of("devices: {count: 2}"), testing::IsEmpty());  // its host models sit on none
}

TEST(Placement, NamedPlacementsAreValid) {
  Graph graph = samples::ppo();
  Placement apart = separation(graph, 4, 1);
  validate(graph, apart);
  EXPECT_THAT(apart.groups.at("training").models, testing::ElementsAre("trainer", "value"));
  Placement mixed = interleaving(graph, 4);
  validate(graph, mixed);
  EXPECT_EQ(mixed.groups.at("reference").devices, (std::vector<int>{0, 1}));
  EXPECT_EQ(mixed.groups.at("reward").devices, (std::vector<int>{2, 3}));
  EXPECT_THROW(separation(graph, 2, 2), base::InputError);
}

// A number takes the first devices that no list names and no number took, in the order of the groups' names.
TEST(Placement, GroupsMaySayHowManyDevices) {
  const Placement made = parse_placement(
      "groups: {b: {devices: 2, models: [policy, trainer]}, a: {devices: 1, models: [value]}, "
      "c: {devices: [1, 5], models: [reference, reward]}}");
  EXPECT_EQ(made.devices, 6);
  EXPECT_THAT(made.groups.at("a").devices, testing::ElementsAre(0));
  EXPECT_THAT(made.groups.at("b").devices, testing::ElementsAre(2, 3));
  EXPECT_EQ(parse_placement(yaml_text(made)), made);
  const std::string counted = "groups: {all: {devices: 3, models: [policy, value, trainer, reference, reward]}}";
  validate(samples::ppo(), parse_placement("devices: {count: 4}\n" + counted));
  EXPECT_THAT(error_of(samples::ppo(), "devices: {count: 2}\n" + counted), testing::HasSubstr("devices.count: 3"));
  for (const char* wrong : {"0", "-1", "1.5", "many"})
    EXPECT_NE(error_of(samples::ppo(), "groups: {all: {devices: " + std::string(wrong) + ", models: []}}"), "")
        << wrong;
}

TEST(Placement, ErrorsCarryTheNumbers) {
  Graph graph = samples::ppo();
  const std::string models = "models: [policy, value, trainer, reference, reward]";
  EXPECT_EQ(error_of(graph, "devices: {count: 2}\ngroups: {all: {devices: [0, 2], " + models + "}}"),
            "[placement.groups.all] expected devices 0 to 1 (2 in all), got 2; try devices.count: 3, as all has 2");
  EXPECT_EQ(
      error_of(graph, "devices: {count: 2}\ngroups: {all: {devices: [0, 1], models: [policy]}}"),
      "[placement.groups] expected a group with model reference, got none; try adding it to the models of a group");
  EXPECT_EQ(
      error_of(graph, "devices: {count: 2}\ngroups: {all: {devices: [0, 1], " + models +
                          "}}\nlayouts: {trainer: {train: {dp: 1}}}"),
      "[placement.layouts.trainer.train] expected a training layout on all 2 devices of its group, got tp 1 · pp 1 · "
      "cp 1 · dp 1 = 1; try dp 2 or leaving dp out");
  EXPECT_EQ(
      error_of(graph, "devices: {count: 3}\ngroups: {all: {devices: [0, 1, 2], " + models +
                          "}}\nlayouts: {policy: {generate: {tp: 2}}}"),
      "[placement.layouts.policy.generate] expected a layout whose ranks divide the 3 devices of its group, got tp 2 "
      "· pp 1 · cp 1 = 2");
  EXPECT_THAT(error_of(graph, "devices: {count: 1}\ngropus: {}"), testing::HasSubstr("unknown key 'gropus'"));
}

// Numbers are read as they are written or not at all.
TEST(Placement, WholeNumbersAreWhole) {
  const auto error = [](const std::string& yaml) { return base::message_of([&] { parse_placement(yaml, "file"); }); };
  const auto layout = [](const std::string& tp) {
    return "devices: {count: 2}\nlayouts: {policy: {train: {tp: " + tp + "}}}";
  };
  for (const char* wrong : {"1.5", "true", "4294967297", "18446744073709551615", ".inf", ".nan", "'1'", "[1]"})
    EXPECT_THAT(error(layout(wrong)), testing::StartsWith("[file.layouts.policy.train.tp] expected a whole number"))
        << wrong;
  EXPECT_EQ(parse_placement(layout("2.0")).layout("policy", "train").tp, 2);
  EXPECT_THAT(error("devices: {count: 2}\nhosts: {reward: true}"), testing::StartsWith("[file.hosts.reward]"));
  EXPECT_THAT(error("devices: {count: 2}\ngroups: {all: {devices: [0, 1.5], models: []}}"),
              testing::StartsWith("[file.groups.all.devices[1]] expected a whole number"));
}

}  // namespace
}  // namespace collimate::graph
