#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "collimate/plan/search/search.h"
#include "collimate/plan/show/plan_html.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Long completions of very different lengths: generation waits for the longest, so that running ahead pays.
Request bounded_request(int staleness, const std::string& cluster = "4x8xH100") {
  Request request = request_for("qwen2.5-7b", cluster, "grpo,1024,512xmean:2000,1.2,16384");
  request.load.staleness = staleness;
  return request;
}

std::vector<int> tried_values(const SearchResult& result) {
  std::vector<int> values;
  for (const Synchrony& tried : result.synchrony) values.push_back(tried.staleness);
  return values;
}

TEST(Synchrony, StalenessIsTakenWhereItPays) {
  const SearchResult exact = search(bounded_request(1)), synchronous = search(bounded_request(0));
  const SearchResult bounded = search_within_staleness(bounded_request(1));
  ASSERT_FALSE(bounded.plans.empty());
  EXPECT_EQ(bounded.plans[0].placement.staleness, 1);
  EXPECT_NEAR(bounded.plans[0].seconds, exact.plans.at(0).seconds, 0.01 * exact.plans[0].seconds);
  EXPECT_THAT(tried_values(bounded), ElementsAre(0, 1));
  EXPECT_EQ(bounded.synchrony[0].seconds, synchronous.plans.at(0).seconds);
}

TEST(Synchrony, AHigherBoundIsNotSlower) {
  const SearchResult one = search_within_staleness(bounded_request(1));
  const SearchResult five = search_within_staleness(bounded_request(5));
  EXPECT_THAT(tried_values(five), ElementsAre(0, 1, 2, 4, 5));
  EXPECT_LE(five.plans.at(0).seconds, one.plans.at(0).seconds * kAlike * kAlike);
  std::set<std::string> forms;
  for (const Plan& plan : five.plans) EXPECT_TRUE(forms.insert(plan.form).second) << plan.form;
}

// On one device everything is in turn, whatever may run ahead.
TEST(Synchrony, NoneIsTakenWhereItGainsNothing) {
  Request request = bounded_request(4, "1xH200-141");
  request.models["policy"] = shape::find_outline("qwen2.5-0.5b");
  const SearchResult result = search_within_staleness(request);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans[0].placement.staleness, 0);
  ASSERT_EQ(result.synchrony.size(), 4U);
  for (const Synchrony& tried : result.synchrony) EXPECT_EQ(std::isinf(tried.seconds), tried.staleness > 0);
  EXPECT_THAT(search_text(request, result, 10), HasSubstr("no plan that gains 0.5 %"));
}

// Where two groups overlap in part, the search's estimate has more staleness gain what the simulator does not see.
TEST(Synchrony, OfPlansAsFastTheOneWithTheLeastIsTaken) {
  Request request = request_for("qwen2.5-1.5b", "4xH100", "ppo,1024,512xmean:2000,1.2,16384");
  request.load.staleness = 2;
  request.fixed["policy.generate"].dp = request.fixed["value.train"].dp = 3;
  const SearchResult result = search_within_staleness(request);
  ASSERT_THAT(tried_values(result), ElementsAre(0, 1, 2));
  const double one = result.synchrony[1].seconds, two = result.synchrony[2].seconds;
  ASSERT_LT(std::max(one, two), kAlike * std::min(one, two));
  EXPECT_EQ(result.plans.at(0).placement.staleness, 1);
}

// However far ahead: what a device does in an iteration takes at least its own seconds.
TEST(Synchrony, NoPeriodIsShorterThanADevicesWork) {
  Request request = request_for("llama2-7b", "128x8xA100-80", "ppo,1024,512xmean:900,0.8,4096");
  request.load.staleness = 4;
  for (const Plan& plan : search_within_staleness(request).plans) {
    std::map<int, double> busy;
    for (const Call& call : plan.calls)
      for (const int device : call.devices) busy[device] += call.seconds;
    for (const auto& [device, seconds] : busy) ASSERT_LE(seconds, plan.seconds * (1 + 1e-9)) << plan.parts;
  }
}

TEST(Synchrony, NoBoundIsAPlainSearch) {
  const SearchResult result = search_within_staleness(bounded_request(0)), plain = search(bounded_request(0));
  EXPECT_TRUE(result.synchrony.empty());
  ASSERT_EQ(result.plans.size(), plain.plans.size());
  for (size_t i = 0; i < plain.plans.size(); ++i) EXPECT_EQ(result.plans[i].placement, plain.plans[i].placement);
}

TEST(Synchrony, WhatDoesNotFitIsSaidOnce) {
  Request request = bounded_request(2, "1xA100-40");
  request.models["policy"] = shape::find_outline("llama3.1-70b");
  const SearchResult result = search_within_staleness(request);
  EXPECT_TRUE(result.plans.empty());
  EXPECT_THAT(result.why, HasSubstr("of which"));
}

// Where nothing fits unless rows are cut, running ahead does not hide that they are.
TEST(Synchrony, RowsThatHaveToBeCutAreShown) {
  Request request = request_for("llama3.1-405b", "10x8xA100-80", "grpo,1024,1024x15360");
  request.load.staleness = 1;
  const SearchResult result = search_within_staleness(request);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_TRUE(result.cut_rows);
  const std::string text = search_text(request, result, 10);
  EXPECT_THAT(text, HasSubstr("  rows are cut (cp), as nothing fits otherwise\n"));
  EXPECT_THAT(text, HasSubstr(" · cp "));
}

TEST(Synchrony, IsShown) {
  const Request request = bounded_request(1);
  const SearchResult result = search_within_staleness(request);
  const std::string text = search_text(request, result, 10);
  EXPECT_THAT(text, HasSubstr("4x8xH100-80, staleness 1\n"));
  EXPECT_THAT(text, HasSubstr("  ->   1  "));
  EXPECT_THAT(search_html(request, result, 10), HasSubstr("1 (taken)"));
  const nlohmann::ordered_json json = search_json(request, result, 10);
  EXPECT_EQ(json.at("synchrony").size(), 2U);
  EXPECT_EQ(json.at("plans").at(0).at("placement").at("staleness"), 1);
}

}  // namespace
}  // namespace collimate::plan
