// A person sees this of clusters of several kinds of device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/plan/show/plan_html.h"
#include "collimate/plan/show/sweep.h"
#include "tests/support/base/error_of.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using testing::HasSubstr;

Request two_kinds(const std::string& cluster = "1xA100-80+1xH200") {
  return request_for("qwen2.5-1.5b", cluster, "ppo,64,256x256");
}

std::string text_of(const Request& request, const graph::Placement& placement) {
  Plan plan = cost_placement(request, placement);
  const PlanSimulation simulated = simulate_plan(request, plan);
  set_times(plan, simulated);
  return plan_text(request, plan, timeline_of(request, plan, simulated));
}

TEST(ShowKinds, DevicesAndTheirMemoryAreByKind) {
  const Request request = two_kinds();
  const std::string text = text_of(request, graph::flattening(request.graph, 2, "cuda"));
  for (const char* part :
       {"   0 A100-80  |", "  1 H200-141  |", "memory: all that is usable", " of 75.2 GB:", " of 132.5 GB:"})
    EXPECT_THAT(text, HasSubstr(part));
  const SearchResult result = search(request);
  const std::string page = search_html(request, result, 100);
  for (const char* part : {"1xA100-80+1x1xH200-141", "1 H200-141<title>", "132.5 GB usable"})
    EXPECT_THAT(page, HasSubstr(part));
  const Plan plan = cost_placement(request, graph::flattening(request.graph, 2, "cuda"));
  const nlohmann::ordered_json json =
      plan_json(request, plan, timeline_of(request, plan, simulate_plan(request, plan)));
  EXPECT_EQ(json.at("memory").at(0).at("kind"), "A100-80");
  EXPECT_EQ(json.at("memory").at(1).at("kind"), "H200-141");
  EXPECT_EQ(json.at("memory").at(1).at("usable_bytes"),
            usable_bytes(DeviceKinds().find("H200-141"), request.constants));
}

TEST(ShowKinds, WhatIsNotUsedIsNamed) {
  const Request request = two_kinds();
  graph::Placement placement = graph::flattening(request.graph, 2, "cuda");
  for (auto& [name, group] : placement.groups) group.devices = {1};
  EXPECT_THAT(text_of(request, placement), HasSubstr("not used by this plan: 1 A100-80\n"));
  EXPECT_EQ(cost_placement(request, placement).form, "flattening");
}

TEST(ShowKinds, MoneyIsByKind) {
  Request request = two_kinds();
  request.cluster.groups[1].gpu.dollars_per_hour = 4;
  request.cluster.groups[1].gpu.price_given = true;
  EXPECT_EQ(
      cost_text(request, 36, 100),
      "100 iterations: 1.00 h, 2.00 GPU-hours, $5.60: 1.00 on A100-80 for $1.60 at $1.60 an hour (assumed: --price), "
      "1.00 on H200-141 for $4.00 at $4.00 an hour");
  const nlohmann::ordered_json run = run_json(request, 36, 100);
  EXPECT_EQ(run.at("gpu_hours"), 2.0);
  EXPECT_FALSE(run.contains("dollars_per_hour"));
  ASSERT_EQ(run.at("kinds").size(), 2U);
  EXPECT_EQ(run.at("kinds").at(1).at("kind"), "H200-141");
  EXPECT_EQ(run.at("kinds").at(1).at("dollars"), 4.0);
  EXPECT_EQ(run.at("kinds").at(1).at("price_source"), "--price");
}

TEST(ShowKinds, ASweepKeepsTheirShares) {
  const std::vector<Variant> more = sweep(two_kinds(), "devices=2,4");
  EXPECT_EQ(cluster_text(more.at(1).request.cluster), "1x2xA100-80+1x2xH200-141");
  EXPECT_EQ(cluster_text(sweep(two_kinds(), "gpu=H100").at(0).request.cluster), "2x1xH100-80");
  EXPECT_EQ(base::message_of([&] { sweep(two_kinds(), "devices=3"); }),
            "[--sweep devices] expected whole nodes, in the proportion of 1x1xA100-80+1x1xH200-141, got 3; try 4");
}

TEST(ShowKinds, AWrongSweepGetsTheNearest) {
  const std::pair<const char*, const char*> cases[] = {
      {"device=2", "; try 'devices'"},
      {"nodes=2", "; try 'devices'"},
      {"devices", "; try devices=32,64"},
      {"devices=", "; try devices=2"},
      {"devices=0", "; try devices=1"},
      {"gpu=A200", "; try 'A100-80'"},
      {"staleness=17", "from 0 to 16, joined by commas, got '17'; try staleness=16"}};
  for (const auto& [text, end] : cases)
    EXPECT_THAT(base::message_of([&, text = text] { sweep(two_kinds(), text); }), testing::EndsWith(end)) << text;
}

TEST(ShowKinds, MoreDevicesAreMoreOfEachKind) {
  Request request = two_kinds("1xA100-40+1xA100-80");
  request.models["policy"] = shape::find_outline("llama2-13b");
  const SearchResult result = search(request);
  ASSERT_TRUE(result.plans.empty());
  EXPECT_THAT(base::message_of([&] { require_plan(request, result); }),
              testing::ContainsRegex("; try [0-9]x[0-9]xA100-40\\+[0-9]x[0-9]xA100-80"));
}

}  // namespace
}  // namespace collimate::plan
