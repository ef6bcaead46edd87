#include "collimate/plan/layout/fixed.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "collimate/base/error.h"
#include "collimate/plan/layout/choices.h"
#include "collimate/plan/show/plan_text.h"
#include "tests/support/base/error_of.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

Request fixed_request(const std::string& model = "llama2-7b", const std::vector<std::string>& fixes = {}) {
  Request request = request_for(model, "8xA100-80", "ppo,512,512x512");
  for (const std::string& text : fixes) fix_layout(request, text);
  check_fixed(request);
  return request;
}

std::string refusal_of(const std::vector<std::string>& fixes, const std::string& model = "llama2-7b") {
  return base::message_of([&] { fixed_request(model, fixes); });
}

TEST(Fixed, WordsAreThoseOfAPlacement) {
  const std::string words = "tp:2,pp:2,dp:2,zero:3,micro_batch:4,recompute:true,offload:false";
  const Request request = fixed_request("llama2-7b", {"policy_trainer.train=" + words});
  const FixedLayout& fixed = request.fixed.at("policy_trainer.train");
  EXPECT_EQ(fixed.tp, 2);
  EXPECT_EQ(fixed.ep, 0);
  EXPECT_EQ(fixed.zero, 3);
  EXPECT_EQ(fixed.recompute, true);
  EXPECT_EQ(fixed.offload, false);
  EXPECT_EQ(fixed_text(fixed), words);
}

TEST(Fixed, StagesSayTheirLayers) {
  const Request request = fixed_request("llama2-7b", {"policy_trainer.train=tp:2,stages:5+9+9+9"});
  const FixedLayout& fixed = request.fixed.at("policy_trainer.train");
  EXPECT_EQ(fixed.pp, 4);
  EXPECT_THAT(fixed.stages, testing::ElementsAre(5, 9, 9, 9));
  EXPECT_EQ(fixed_text(fixed), "tp:2,pp:4,stages:5+9+9+9");
  EXPECT_THAT(refusal_of({"policy_trainer.train=stages:5+9+9+8"}),
              HasSubstr("the 32 layers of llama2-7b together, got stages:5+9+9+8, which are 31"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=pp:2,stages:5+9+9+9"}), EndsWith("try pp:4"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=stages:32+"}), HasSubstr("stages from 1 to "));
  const Request runs = fixed_request("llama2-7b", {"policy_trainer.train=virtual_stages:2,stages:5+9+9+9"});
  EXPECT_EQ(fixed_text(runs.fixed.at("policy_trainer.train")), "pp:2,virtual_stages:2,stages:5+9+9+9");
  EXPECT_THAT(refusal_of({"policy_trainer.train=virtual_stages:2"}), EndsWith("try virtual_stages:2,pp:2"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=pp:8,virtual_stages:5"}), EndsWith("try virtual_stages:4"));
}

// Stages that are fixed are in the plan and in its file, which another model's layers contradict.
TEST(Fixed, PlansHaveTheStages) {
  const Request request = fixed_request("llama2-7b", {"policy_trainer.train=tp:2,stages:5+9+9+9"});
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  for (const Plan& plan : result.plans)
    EXPECT_THAT(plan.placement.layout("policy_trainer", "train").stages, testing::ElementsAre(5, 9, 9, 9));
  graph::Placement placement = graph::parse_placement(graph::yaml_text(result.plans.front().placement));
  EXPECT_EQ(placement, result.plans.front().placement);
  const auto trains = [&](const Plan& plan) {
    for (const Call& call : plan.calls)
      if (call.model == "policy_trainer") return call;
    return Call();
  };
  EXPECT_THAT(layout_text(trains(cost_placement(request, placement)).how), HasSubstr("pp 4 (5+9+9+9 layers)"));
  placement.layouts["policy_trainer"]["train"].stages.back() = 10;
  EXPECT_THAT(base::message_of([&] { cost_placement(request, placement); }),
              HasSubstr("[placement.layouts.policy_trainer.train.stages] expected stages that are the 32 layers of "
                        "llama2-7b together, got [5, 9, 9, 10], which are 33"));
}

TEST(Fixed, UnknownAndRepeatedWordsAreNamed) {
  EXPECT_THAT(refusal_of({"policy.generat=tp:2"}), EndsWith("got 'policy.generat'; try 'policy.generate'"));
  EXPECT_THAT(refusal_of({"gae.gae=tp:2"}), HasSubstr("expected one of policy.generate"));
  EXPECT_THAT(refusal_of({"policy.generate=tpp:2"}), EndsWith("got 'tpp'; try 'tp'"));
  EXPECT_THAT(refusal_of({"policy.generate=cp:2"}), HasSubstr("the planner finds no layouts"));
  EXPECT_THAT(refusal_of({"policy.generate=tp=2"}), HasSubstr("WORD:VALUE"));
  EXPECT_THAT(refusal_of({"policy.generate"}), HasSubstr("MODEL.FUNCTION=WORD:VALUE"));
  EXPECT_THAT(refusal_of({"policy.generate=tp:0"}), EndsWith("got '0'; try tp:1"));
  EXPECT_THAT(refusal_of({"policy.generate=zero:4"}), EndsWith("zero from 0 to 3, got '4'; try zero:3"));
  EXPECT_THAT(refusal_of({"policy=tp:2"}), EndsWith("got 'policy'; try 'policy.generate'"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=recompute:no"}), EndsWith("try recompute:false"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=recompute:yes"}),
              EndsWith("recompute:true or recompute:false, got 'yes'; try recompute:true"));
  EXPECT_THAT(refusal_of({"policy.generate=tp:2,tp:4"}), HasSubstr("'tp' twice"));
  EXPECT_THAT(refusal_of({"policy.generate=tp:2", "policy.generate=pp:2"}), HasSubstr("'policy.generate' twice"));
}

TEST(Fixed, ContradictionsGetTheNearestValidChoice) {
  EXPECT_EQ(refusal_of({"policy.generate=tp:3"}),
            "[--fix policy.generate] expected tp that divides the 32 heads of llama2-7b, got tp 3; try tp:2");
  EXPECT_EQ(refusal_of({"policy.generate=tp:8,pp:4"}),
            "[--fix policy.generate] expected ranks for at most 8 devices, got tp:8,pp:4 for 32; try tp:8,pp:1");
  EXPECT_THAT(refusal_of({"policy.generate=pp:40"}),
              EndsWith("at most the 32 layers of llama2-7b, got pp 40; try pp:8"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=tp:2,dp:8"}), EndsWith("got tp:2,dp:8 for 16; try dp:4"));
  EXPECT_THAT(refusal_of({"policy.generate=zero:3"}), EndsWith("got zero 3; try zero:0"));
  EXPECT_THAT(refusal_of({"reference.log_probs=zero:1"}), EndsWith("got zero 1; try zero:0"));
  EXPECT_THAT(refusal_of({"policy_trainer.train=dp:1,zero:3"}), EndsWith("try dp:2 or zero:0"));
  EXPECT_THAT(refusal_of({"reference.log_probs=recompute:true"}), HasSubstr("of a function that trains"));
  for (const char* function : {"policy_trainer.train", "policy.generate"})
    EXPECT_EQ(refusal_of({fmt::format("{}=micro_batch:100000", function)}),
              fmt::format("[--fix {}] expected micro_batch of at most the 512 rows of an iteration, got "
                          "micro_batch:100000; try micro_batch:512",
                          function));
  EXPECT_THAT(refusal_of({"policy.generate=ep:2"}), HasSubstr("llama2-7b has no experts"));
  EXPECT_THAT(refusal_of({"policy.generate=ep:3"}, "qwen3-30b-a3b"), EndsWith("got ep 3; try ep:2"));
  EXPECT_THAT(refusal_of({"policy.generate=tp:4,ep:2"}, "qwen3-30b-a3b"), EndsWith("got ep 2; try ep:4"));
}

TEST(Fixed, OtherOptionsAreNotContradicted) {
  Request request = fixed_request();
  request.whole = true;
  fix_layout(request, "policy.generate=dp:2");
  EXPECT_NO_THROW(check_fixed(request));
  fix_layout(request, "value.train=tp:2");
  EXPECT_THROW(check_fixed(request), base::InputError);
  request = fixed_request();
  request.micro_batch = 2;
  fix_layout(request, "value.train=micro_batch:4");
  EXPECT_THROW(check_fixed(request), base::InputError);
}

// Every plan keeps to what is fixed, and none is faster than where all is free.
TEST(Fixed, PlansKeepToIt) {
  const SearchResult free = search(fixed_request());
  const Request request = fixed_request(
      "llama2-7b", {"policy.generate=tp:2,pp:1,micro_batch:16", "policy_trainer.train=tp:2,zero:3,recompute:true"});
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_GE(result.plans[0].seconds, 0.99 * free.plans.at(0).seconds);
  for (const Plan& plan : result.plans) {
    graph::validate(request.graph, plan.placement);
    for (const Call& call : plan.calls) {
      const auto fixed = request.fixed.find(call.model + "." + call.function);
      if (fixed == request.fixed.end()) continue;
      EXPECT_TRUE(keeps_to(fixed->second, call.how, static_cast<int>(call.devices.size()))) << layout_text(call.how);
      EXPECT_EQ(fixed_text(fixed->second, call.how), fixed_text(fixed->second));
    }
  }
}

// The flow with a second reward model, which is as the first one in all but what is fixed.
Request request_with_judge() {
  Request request = fixed_request();
  const int reward = request.graph.node_index("reward.score");
  graph::Node judge = request.graph.node(reward);
  judge.id = "judge.score";
  judge.model = "judge";
  judge.outputs = {"judge.score"};
  request.graph.models["judge"] = request.graph.models.at("reward");
  request.graph.nodes.insert(request.graph.nodes.begin() + reward + 1, judge);
  return request;
}

// Fixing a layout fixes only the function that is named.
TEST(Fixed, OneFunctionIsNotTheOther) {
  Request request = request_with_judge();
  fix_layout(request, "reward.score=tp:8");
  check_fixed(request);
  const Functions functions(request);
  ChoiceTable table(request, functions, true);
  std::map<std::string, std::set<int>> sizes;  // of tp, by model
  for (size_t f = 0; f < functions.size(); ++f) {
    if (functions.at(f).model < 0) continue;
    for (const Choice& choice : table.of(f, {0, 8}).all) sizes[functions.model_of(f)].insert(choice.how.layout.tp);
  }
  EXPECT_THAT(sizes.at("reward"), testing::ElementsAre(8));
  EXPECT_THAT(sizes.at("judge"), testing::Contains(1));
  EXPECT_THAT(sizes.at("value"), testing::Contains(1));
}

// The layout that an error offers.
std::string offered_layout(const std::string& error) {
  const std::string option = "try --fix ";
  const size_t at = error.find(option);
  EXPECT_NE(at, std::string::npos) << error;
  return at == std::string::npos ? "" : error.substr(at + option.size());
}

TEST(Fixed, WhatDoesNotFitGetsTheLayoutThatDoes) {
  const Request request = fixed_request("llama2-13b", {"policy_trainer.train=tp:1,pp:1,zero:0,offload:false"});
  const SearchResult result = search(request);
  ASSERT_TRUE(result.plans.empty());
  const std::string error = base::message_of([&] { require_plan(request, result); });
  EXPECT_THAT(error, HasSubstr("fixed layouts that fit the cluster, got policy_trainer.train on 8 devices"));
  // The layout on offer has the four words that were fixed, and with it there is a plan.
  const std::string layout = offered_layout(error);
  EXPECT_THAT(layout, testing::MatchesRegex("policy_trainer.train=tp:[0-9]+,pp:[0-9]+,zero:[0-9],offload:[a-z]+"));
  const Request offered = fixed_request("llama2-13b", {layout});
  EXPECT_FALSE(search(offered).plans.empty()) << layout;
}

// 512 rows at once without recompute fit nowhere; the value model's layout and recompute are no part of it.
TEST(Fixed, WhatIsFineIsKept) {
  const std::vector<std::string> fine = {"value.train=tp:8"};
  Request request = fixed_request("llama2-7b", fine);
  request.load.updates = 1;
  fix_layout(request, "policy_trainer.train=micro_batch:512,recompute:false");
  const SearchResult result = search(request);
  ASSERT_TRUE(result.plans.empty());
  const std::string layout = offered_layout(base::message_of([&] { require_plan(request, result); }));
  EXPECT_THAT(layout,
              testing::MatchesRegex("policy_trainer.train=micro_batch:(512,recompute:true|[0-9]+,recompute:false)"));
  Request offered = fixed_request("llama2-7b", {fine[0], layout});
  offered.load.updates = 1;
  EXPECT_FALSE(search(offered).plans.empty()) << layout;
}

// Sizes that no slice of the devices has are no error of the search: nothing fits, with the reason.
TEST(Fixed, SizesThatDivideNoDevicesAreExplained) {
  Request request = fixed_request("llama2-7b", {"policy.generate=tp:4,pp:2"});
  request.cluster = parse_cluster("1x4xA100-80");
  const SearchResult result = search(request);
  EXPECT_TRUE(result.plans.empty());
  EXPECT_THAT(result.why, HasSubstr("policy.generate on 4 devices: tp:4,pp:2 as fixed, whose 8 ranks"));
}

}  // namespace
}  // namespace collimate::plan
