#include "collimate/cli/plan_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "collimate/cli/plan_request.h"
#include "collimate/plan/search/search.h"

namespace collimate::cli {
namespace {

PlanOptions small_flow() {
  PlanOptions options;
  options.flow = "grpo";
  options.models = {"policy=opt-1.3b"};
  options.cluster = "2xMine";
  options.devices = {"Mine=A100-80", "Mine.flops=1e13"};
  options.prompt = "64";
  options.completion = "mean:100,0.8,512";
  options.constants = {"phase_seconds=0.5", "nccl.ring_ll.efficiency=0.5"};
  options.rows = 32;
  options.updates = 2;
  options.staleness = 0;
  return options;
}

// Writes the file as `plan --output` does.
std::string plan_file(const PlanOptions& options) {
  const collimate::plan::Request request = plan_request(options).request;
  const collimate::plan::SearchResult found = collimate::plan::search_within_staleness(request);
  return request_text(options, "plan.yaml") + graph::yaml_text(found.plans.at(0).placement);
}

TEST(PlanRequest, PlannedFromItsFileIsTheSameFile) {
  const std::string file = plan_file(small_flow());
  EXPECT_EQ(plan_file(options_of_file(file, "plan.yaml", {})), file);
}

TEST(PlanRequest, AnyTextGoesRoundAndBack) {
  PlanOptions options = small_flow();
  options.sets = {"a=${HOME}", "b=$${X}", "c='d' \"e\"\n#: f\\", "", " 7", "null", "[x]"};
  options.layouts = "é: -";
  options.fixed = {"policy.generate=tp:2,pp:1"};
  const std::string text = request_text(options, "plan.yaml");
  const PlanOptions read = options_of_file(text, "plan.yaml", {});
  EXPECT_EQ(read.sets.get(), options.sets.get());
  EXPECT_EQ(read.layouts.get(), options.layouts.get());
  EXPECT_EQ(read.staleness.get(), options.staleness.get());
  EXPECT_EQ(request_text(read, "plan.yaml"), text);
}

TEST(PlanRequest, DevicesOfOneAreNotThoseOfAnother) {
  PlanOptions slow = small_flow(), fast = small_flow();
  fast.devices = {"Mine=A100-80", "Mine.flops=1e15"};
  const std::string first = plan_file(slow);
  const auto seconds = [](const PlanOptions& options) {
    return collimate::plan::search_within_staleness(plan_request(options).request).plans.at(0).seconds;
  };
  EXPECT_GT(seconds(slow), seconds(fast) + 1);
  EXPECT_EQ(plan_file(slow), first);
  fast.devices = {};
  EXPECT_THROW(plan_request(fast), base::InputError);  // there is no kind Mine any more
}

TEST(PlanRequest, PathsAreSeenFromTheFile) {
  PlanOptions options;
  options.config = "configs/run.yaml";
  options.machine = "/etc/machine.yaml";
  const std::string here = std::filesystem::current_path().string();
  EXPECT_THAT(request_text(options, "plans/new/plan.yaml"),
              testing::StartsWith("request:\n  config: \"../../configs/run.yaml\"\n  directory: \"../..\"\n"));
  const PlanOptions read = options_of_file(request_text(options, "plans/new/plan.yaml"), "plans/new/plan.yaml", {});
  EXPECT_EQ(read.config.get(), here + "/configs/run.yaml");
  EXPECT_EQ(std::filesystem::path(read.directory.get() + "/").lexically_normal(), here + "/");
  EXPECT_EQ(read.machine.get(), "/etc/machine.yaml");
  EXPECT_THAT(request_text(options, "/plan.yaml"), testing::HasSubstr("config: " + here + "/configs/run.yaml\n"));
}

TEST(PlanRequest, WhatIsGivenIsInsteadOfTheFiles) {
  const std::string text = request_text(small_flow(), "plan.yaml");
  PlanOptions given;
  given.cluster = "4xH100";
  EXPECT_EQ(options_of_file(text, "plan.yaml", given).cluster.get(), "4xH100");
  EXPECT_EQ(options_of_file(text, "plan.yaml", given).flow.get(), "grpo");
  given.flow = "ppo";
  const PlanOptions other = options_of_file(text, "plan.yaml", given);
  EXPECT_EQ(other.flow.get(), "ppo");
  EXPECT_TRUE(other.models->empty());
  EXPECT_FALSE(other.rows->has_value());
  EXPECT_EQ(other.constants->size(), 2U);
}

}  // namespace
}  // namespace collimate::cli
