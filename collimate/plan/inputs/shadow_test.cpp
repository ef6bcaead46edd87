#include "collimate/plan/inputs/shadow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/search/search.h"
#include "collimate/plan/simulate/simulate_plan.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

using testing::HasSubstr;

Request ppo_with_shadow() {
  Request request = request_for("llama2-7b", "1x8xA100-80", "ppo,512,512x512");
  request.models["value"] = shape::find_outline("opt-1.3b");
  request.lora["value"] = 16;
  add_shadow(request, "value");
  return request;
}

size_t function_of(const Request& request, const Functions& functions, const std::string& model) {
  for (size_t f = 0; f < functions.size(); ++f)
    if (request.graph.node(functions.at(f).node).model == model) return f;
  return functions.size();
}

// The value model gets its weights as the policy does: shape, adapters and a head of one value are its trainer's too.
TEST(Shadow, IsWhatItsTrainerTrains) {
  EXPECT_THAT(models_to_shadow(flow_of("ppo")), testing::ElementsAre("value"));
  const Request request = ppo_with_shadow();
  EXPECT_TRUE(request.graph.trains("value_trainer"));
  EXPECT_FALSE(request.graph.trains("value"));
  EXPECT_EQ(request.lora, (std::map<std::string, int64_t>{{"value_trainer", 16}}));
  EXPECT_EQ(outline_of(request, "value_trainer"), shape::find_outline("opt-1.3b"));
  const Functions functions(request);
  EXPECT_EQ(functions.models.size(), 6U);
  EXPECT_EQ(functions.transfers.size(), 2U);
  const size_t trains = function_of(request, functions, "value_trainer"),
               reads = function_of(request, functions, "value");
  ASSERT_LT(std::max(trains, reads), functions.size());
  EXPECT_EQ(functions.at(trains).work, Work::kTrain);
  EXPECT_FALSE(functions.at(trains).language_head);
  EXPECT_FALSE(functions.at(reads).frozen);
  EXPECT_EQ(functions.at(reads).base, static_cast<int>(trains));
  for (const size_t f : {trains, reads}) {
    EXPECT_EQ(functions.at(f).lora_rank, 16);
    EXPECT_TRUE(functions.at(f).passes);
  }
}

// Other readers of the frozen weights of a model's adapters read those that the model's trainer has.
TEST(Shadow, TheTrainerHasTheFrozenWeights) {
  Request request = request_for("llama2-7b", "1x8xA100-80", "ppo,512,512x512");
  request.lora["value"] = 16;
  request.bases = {{"value", "value+reward"}, {"reward", "value+reward"}};
  const auto base_of_reward = [&] {
    const Functions functions(request);
    return functions.at(function_of(request, functions, "reward")).base;
  };
  EXPECT_GE(base_of_reward(), 0);
  add_shadow(request, "value");
  EXPECT_EQ(request.bases,
            (std::map<std::string, std::string>{{"value_trainer", "value+reward"}, {"reward", "value+reward"}}));
  const Functions functions(request);
  EXPECT_EQ(base_of_reward(), static_cast<int>(function_of(request, functions, "value_trainer")));
}

// The shadow is beside generation, where only scoring is: neither gradients nor an optimizer.
TEST(Shadow, HasDevicesOfItsOwn) {
  Request request = ppo_with_shadow();
  request.lora.clear();
  graph::Placement placement;
  placement.devices = 8;
  placement.groups["inference"] = {{0, 1, 2, 3}, {"policy", "value", "reference", "reward"}};
  placement.groups["training"] = {{4, 5, 6, 7}, {"policy_trainer", "value_trainer"}};
  graph::Layout layout;
  layout.tp = 4;
  for (const char* model : {"policy_trainer", "value_trainer"}) placement.layouts[model]["train"] = layout;
  const Plan plan = cost_placement(request, placement);
  EXPECT_EQ(plan.form, "separation");
  ASSERT_EQ(plan.transfer_seconds.size(), 2U);
  for (const double seconds : plan.transfer_seconds) EXPECT_GT(seconds, 0);
  ASSERT_EQ(plan.memory.size(), 2U);
  for (const HeldItem& item : plan.memory[0].resident) EXPECT_EQ(item.what, "weights") << item.owner;
  request.form = "separation";
  request.keep = 2;
  const SearchResult found = search(request);
  ASSERT_FALSE(found.plans.empty());
  graph::validate(request.graph, found.plans[0].placement);
  EXPECT_LE(found.plans[0].seconds, simulate_plan(request, plan).period_seconds * 1.001);
}

// Training may go on beside what it gives weights to: with a shadow no placement is lost.
TEST(Shadow, IsNoSlowerThanOneModel) {
  for (const int staleness : {0, 1}) {
    Request request = request_for("llama2-7b", "16x8xA100-80", "ppo,1024,512xmean:900,1,4096");
    request.load.staleness = staleness;
    const double together = search(request).plans.at(0).seconds;
    add_shadow(request, "value");
    EXPECT_LE(search(request).plans.at(0).seconds, 1.011 * together) << staleness;
  }
}

TEST(Shadow, OnlyOfWhatTrainsAndScores) {
  const auto error = [](const char* flow, const char* model) -> std::string {
    Request request = request_for("llama2-7b", "1x8xA100-80", std::string(flow) + ",512,512x512");
    try {
      add_shadow(request, model);
    } catch (const base::InputError& found) {
      return found.what();
    }
    return "";
  };
  EXPECT_THAT(error("ppo", "valu"), HasSubstr("try 'value'"));
  EXPECT_THAT(error("ppo", "policy"), HasSubstr("expected one of value, got 'policy'"));
  EXPECT_THAT(error("grpo", "value"), HasSubstr("a flow with a model that trains and scores"));
}

}  // namespace
}  // namespace collimate::plan
