#include "collimate/plan/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/plan/search/search.h"
#include "collimate/plan/show/plan_text.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using Groups = std::map<std::string, graph::ResourceGroup>;

// Names the form of PPO's five models on eight devices.
std::string form_with(const Groups& groups) {
  graph::Placement placement;
  placement.devices = 8;
  placement.groups = groups;
  return form_of(flow_of("ppo"), placement);
}

TEST(Form, HasTheNameOfItsPlacement) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7}, low = {0, 1, 2, 3}, high = {4, 5, 6, 7};
  const std::vector<int> first = {0, 1}, second = {2, 3}, third = {4, 5}, fourth = {6, 7};
  EXPECT_EQ(form_with({{"a", {all, {"policy", "policy_trainer", "value", "reference", "reward"}}}}), "flattening");
  EXPECT_EQ(form_with({{"a", {all, {"policy", "policy_trainer", "value"}}},
                       {"b", {low, {"reference"}}},
                       {"c", {high, {"reward"}}}}),
            "interleaving");
  EXPECT_EQ(form_with({{"a", {low, {"policy", "reference", "reward"}}}, {"b", {high, {"policy_trainer", "value"}}}}),
            "separation");
  EXPECT_EQ(form_with({{"a", {low, {"policy", "policy_trainer", "reference"}}}, {"b", {high, {"value", "reward"}}}}),
            "split");
  EXPECT_EQ(form_with({{"a", {first, {"policy", "policy_trainer"}}},
                       {"b", {second, {"value"}}},
                       {"c", {third, {"reference"}}},
                       {"d", {fourth, {"reward"}}}}),
            "standalone");
  EXPECT_EQ(form_with({{"a", {all, {"policy", "reference"}}},
                       {"b", {low, {"policy_trainer", "reward"}}},
                       {"c", {high, {"value"}}}}),
            "nested");
  // The form is that of the devices that are used.
  EXPECT_EQ(form_with({{"a", {low, {"policy", "policy_trainer", "value", "reference", "reward"}}}}), "flattening");
}

// The best of one form is what the search of all forms reports of it.
TEST(Form, IsSearchedAlone) {
  Request request = request_for("llama2-7b", "2x8xA100-80", "ppo,1024,512xmean:900,0.8,4096");
  const SearchResult all = search(request);
  ASSERT_GE(all.plans.size(), 4U);
  for (const Plan& plan : all.plans) {
    request.form = plan.form;
    const SearchResult alone = search(request);
    const auto same = std::ranges::find(alone.plans, plan.form, &Plan::form);
    ASSERT_NE(same, alone.plans.end()) << plan.form;
    EXPECT_NEAR(same->seconds, plan.seconds, 1e-9 * plan.seconds) << plan.form;
    EXPECT_TRUE(alone.plans.size() == 1 || plan.form == "separation") << plan.form;
  }
}

// A standalone placement generates apart from training too: who asks for a separation gets it where there is no other.
TEST(Form, ASeparationMayGiveEachModelDevicesOfItsOwn) {
  Request request = request_for("llama2-7b", "2xH200-141", "grpo,64,64x64");
  request.form = "separation";
  const SearchResult found = search(request);
  ASSERT_FALSE(found.plans.empty());
  const graph::Placement& placement = found.plans[0].placement;
  for (const int device : placement.group_of("policy")->devices)
    EXPECT_THAT(placement.group_of("policy_trainer")->devices, testing::Not(testing::Contains(device)));
}

TEST(Form, OneThatDoesNotFitIsSaidWithThoseThatDo) {
  Request request = request_for("llama2-7b", "1xH200-141", "grpo,64,64x64");
  request.form = "standalone";
  std::string text;
  try {
    require_plan(request, search(request));
  } catch (const base::InputError& error) {
    text = error.what();
  }
  EXPECT_THAT(text, testing::StartsWith("[--form standalone] expected a form of which a placement fits the cluster"));
  EXPECT_THAT(text, testing::EndsWith("try flattening"));
}

}  // namespace
}  // namespace collimate::plan
