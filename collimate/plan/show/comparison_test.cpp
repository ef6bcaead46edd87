#include "collimate/plan/show/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collimate/plan/search/search.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using testing::HasSubstr;

constexpr const char* kItself = "it is the choice itself";

// 512 rows of PPO in 8 updates.
Request compared_request(const std::string& model) { return request_for(model, "8xA100-80", "ppo,512,512x512"); }

Plan flat_on_eight(const Request& request) {
  return cost_placement(request, graph::flattening(request.graph, 8, "cuda"));
}

// Puts so many rows in a micro-batch of all that does not generate.
Plan with_micro_batch(const Request& request, Plan plan, int64_t rows) {
  for (Call& call : plan.calls)
    if (!call.devices.empty() && request.graph.spec(call.node).kind != graph::Kind::kGenerate)
      call.how.layout.micro_batch = rows;
  return plan;
}

// The comparison names what is largest against a plan, in the order in which it excludes it.
TEST(Comparison, NamesWhatSpeaksAgainstAPlan) {
  Request request = compared_request("llama2-7b");
  const SearchResult result = search(request);
  const Plan &best = result.plans.at(0), &second = result.plans.at(1);
  EXPECT_EQ(objection(request, best, best), "it is the choice itself");
  ASSERT_GT(second.seconds, kAlike * best.seconds);
  EXPECT_EQ(objection(request, best, second), loss_text(best, second));
  EXPECT_THAT(objection(request, second, best), HasSubstr("did not find it"));
  Plan close = second;
  close.seconds = kAlike * best.seconds;
  EXPECT_THAT(objection(request, best, close), HasSubstr("as fast within 0.5 %"));
  Plan ahead = best;
  ahead.placement.staleness = 2;
  EXPECT_THAT(objection(request, best, ahead), HasSubstr("2 iterations ahead, and at most 0"));
  const Plan plain = cost_placement(request, graph::flattening(request.graph, 8, "cuda"));
  EXPECT_THAT(objection(request, best, plain), testing::StartsWith("it does not fit: device 0 needs"));
  request.fixed["policy.generate"].pp = 7;
  EXPECT_THAT(objection(request, best, second), HasSubstr("are fixed"));
}

TEST(Comparison, StandsBesideTheChoice) {
  const Request request = compared_request("llama2-7b");
  const SearchResult result = search(request);
  const Plan &best = result.plans.at(0), &other = result.plans.at(1);
  const PlanSimulation simulated = simulate_plan(request, other);
  constexpr int kWide = 1000;  // no line is broken
  const std::string text = comparison_text(request, best, {other, simulated, "mine.yaml"}, kWide);
  for (const std::string& part :
       {"why not mine.yaml: " + other.form, objection(request, best, other),
        std::string("policy_trainer.train on devices"),
        memory_text(request, best, kWide) + "  of mine.yaml:", "  of mine.yaml:" + memory_text(request, other, kWide)})
    EXPECT_THAT(text, HasSubstr(part));
  for (size_t i = 0; i < best.calls.size(); ++i) {
    if (best.calls[i].devices.empty()) continue;  // on the host
    EXPECT_THAT(text, HasSubstr(call_row("    choice", best.calls[i], kWide) +
                                call_row("    mine.yaml", other.calls[i], kWide)));
  }
  const nlohmann::ordered_json json = comparison_json(request, best, {other, simulated, "mine.yaml"});
  EXPECT_NEAR(json.at("slower_by").get<double>(), other.seconds / best.seconds - 1, 1e-12);
  EXPECT_EQ(json.at("plan").at("form"), other.form);
}

// The search has no more rows at once than a replica: it does not object to its own plan.
TEST(Comparison, FixedRowsAboveAReplicasAreAllOfThem) {
  Request request = compared_request("qwen2.5-0.5b");
  request.fixed["policy.generate"].micro_batch = 4096;
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(objection(request, result.plans[0], result.plans[0]), kItself);
  request.fixed.clear();
  request.fixed["policy_trainer.train"].micro_batch = 4096;
  const Plan flat = flat_on_eight(request);
  EXPECT_EQ(objection(request, flat, with_micro_batch(request, flat, 4096)), kItself);
  EXPECT_EQ(objection(request, flat, with_micro_batch(request, flat, 8)),
            kItself);  // 512 rows / 8 updates / 8 replicas
  EXPECT_THAT(objection(request, flat, with_micro_batch(request, flat, 7)),
              HasSubstr("has micro_batch:7, and micro_batch:4096 are fixed"));
}

TEST(Comparison, MicroBatchIsThatOfTheRequest) {
  Request request = compared_request("qwen2.5-0.5b");
  request.micro_batch = 4;
  const Plan flat = flat_on_eight(request);
  EXPECT_EQ(objection(request, flat, with_micro_batch(request, flat, 4)), kItself);
  EXPECT_THAT(objection(request, flat, with_micro_batch(request, flat, 2)),
              HasSubstr("has micro_batch 2, and --micro-batch is 4"));
  EXPECT_THAT(objection(request, flat, flat), HasSubstr("has micro_batch 0, and --micro-batch is 4"));
}

// A placement that recipe::make_placement refuses is no plan of a request for whole models.
TEST(Comparison, WholeModelsAreNotCut) {
  Request request = compared_request("qwen2.5-0.5b");
  request.whole = true;
  const Plan flat = flat_on_eight(request);
  EXPECT_EQ(objection(request, flat, flat), kItself);
  const auto against = [&](const std::string& model, const std::string& function, const graph::Layout& layout) {
    graph::Placement placement = flat.placement;
    placement.layouts[model][function] = layout;
    return objection(request, flat, cost_placement(request, placement));
  };
  const char* refused = "and every rank holds all of its model";
  EXPECT_THAT(against("policy_trainer", "train", {.dp = 8, .zero = 3}), HasSubstr(refused));
  EXPECT_THAT(against("policy_trainer", "train", {.tp = 2, .dp = 4}), HasSubstr(refused));
  for (const graph::Layout& layout :
       {graph::Layout{.dp = 8, .zero = 2}, graph::Layout{.dp = 8, .micro_batch = 2},
        graph::Layout{.dp = 8, .recompute = true}, graph::Layout{.dp = 8, .offload = true}})
    EXPECT_THAT(against("policy_trainer", "train", layout), testing::Not(HasSubstr(refused)));
  EXPECT_THAT(against("policy", "generate", {.micro_batch = 4}), testing::Not(HasSubstr(refused)));
  graph::Placement swapped = flat.placement;
  swapped.residency["reference"] = graph::Residency::kSwap;
  EXPECT_THAT(objection(request, flat, cost_placement(request, swapped)), HasSubstr("reference is swapped"));
  request.turns = true;
  EXPECT_THAT(objection(request, flat, cost_placement(request, swapped)), testing::Not(HasSubstr("is swapped")));
}

}  // namespace
}  // namespace collimate::plan
