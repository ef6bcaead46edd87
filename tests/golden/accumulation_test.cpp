// Updates of several micro-batches: what TRL divides by, and what it logs.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/golden/changed.h"
#include "tests/golden/window.h"

namespace collimate::golden {
namespace {

using Micros = std::vector<size_t>;

TEST(Windows, EndAtAGradientNorm) {
  const json ends = {{"grad_norm", 1.0}}, goes_on = {{"grad_norm", nullptr}}, no_key = json::object();
  const json several = json::array({goes_on, ends, no_key, goes_on, ends, ends});
  EXPECT_EQ(window_lengths(several, Micros(6, 1), 3), (Micros{2, 2, 3, 3, 3, 1}));
  EXPECT_EQ(window_lengths(json::array({ends, goes_on, ends}), {4, 2, 1}, 4), (Micros{4, 3, 3}));
  EXPECT_EQ(window_lengths(json::array({ends, goes_on}), {1, 1}, 4), (Micros{1, 4})) << "the file ends before it";
  EXPECT_EQ(window_lengths(json::array({goes_on, goes_on}), {3, 3}, 4), (Micros{6, 6})) << "more than declared";
}

TEST(MetricLog, IsTheMeanOfWhatWasReportedSinceItWasLogged) {
  const std::map<std::string, std::string> names = {{"theirs/a", "a"}, {"theirs/b", "b"}};
  const auto fits = [&](MetricLog& log, const json& logged) {
    Comparison comparison;
    log.compare(names, logged, 0, comparison);
    return comparison.within();
  };
  MetricLog log(std::map<std::string, double>{{"a", 1.0}});
  log.add({{"a", 3.0}, {"b", 5.0}});
  EXPECT_TRUE(fits(log, {{"theirs/a", 2.0}}));
  EXPECT_FALSE(fits(log, {{"theirs/a", 2.0}})) << "nothing is left to compare";
  log.add({{"a", 7.0}, {"b", 6.0}});
  EXPECT_TRUE(fits(log, {{"theirs/a", 7.0}, {"theirs/b", 5.5}}));
  log.add({{"a", 7.0}});
  log.clear();
  EXPECT_FALSE(fits(log, {{"theirs/a", 7.0}}));
}

// TRL's KTOTrainer logs the rewards of chosen rows over the micro-batches that have one.
TEST(Accumulation, AMicroBatchWithoutChosenRowsReportsNoChosenRewards) {
  json golden = read_small("kto_tiny");
  json& step = golden["steps"][1];
  step["metrics"] = {{"rewards/chosen", 0.0}, {"rewards/rejected", 0.0}};
  const std::string place = "/steps/1/metrics/rewards~1";
  const json mixed = step["micro"][0];
  json undesirable = mixed;
  for (json& label : undesirable["batch"]["label"]) label = false;
  const double chosen = ours_at(golden, place + "chosen"), rejected = ours_at(golden, place + "rejected");
  EXPECT_NE(chosen, 0.0);
  step["micro"] = json::array({undesirable});
  const double others = ours_at(golden, place + "rejected");
  EXPECT_NE(others, rejected);
  step["micro"] = json::array({mixed, undesirable});
  EXPECT_NEAR(ours_at(golden, place + "chosen"), chosen, 1e-6);
  EXPECT_NEAR(ours_at(golden, place + "rejected"), (rejected + others) / 2, 1e-6);
}

// Steps of two micro-batches each, in place of two steps.
json joined_in_pairs(json golden) {
  json steps = json::array();
  for (size_t s = 0; s + 1 < golden["steps"].size(); s += 2) {
    json step = golden["steps"][s + 1];
    step["micro"] = json::array({golden["steps"][s], golden["steps"][s + 1]});
    for (json& micro : step["micro"]) micro.erase("metrics");
    step.erase("batch");
    steps.push_back(step);
  }
  golden["steps"] = steps;
  return golden;
}

TEST(Accumulation, GrpoLogsTheMeanOverAnUpdate) {
  json golden = read_small("grpo_e2e_kl_tiny");
  const double logged = golden["steps"][5]["metrics"]["kl"];
  json joined = joined_in_pairs(golden);
  expect_within(replay_small(joined));
  EXPECT_NEAR(ours_at(joined, "/steps/2/metrics/kl"), logged, 1e-3);
  // Each micro-batch has numbers of its own in a file.
  golden["steps"][4]["metrics"] = {{"kl", 0.0}};
  const double first = ours_at(golden, "/steps/4/metrics/kl"), second = ours_at(golden, "/steps/5/metrics/kl");
  EXPECT_GT(std::abs(first - second), 0.1);
  EXPECT_NEAR((first + second) / 2, logged, 1e-3);
  joined["steps"][2]["micro"][1]["metrics"] = {{"kl", 0.0}};
  EXPECT_NEAR(ours_at(joined, "/steps/2/micro/1/metrics/kl"), second, 1e-6);
  EXPECT_NEAR(ours_at(joined, "/steps/2/metrics/kl"), logged, 1e-3);
}

// TRL divides by current_gradient_accumulation_steps, the micro-batches that the update has.
TEST(Accumulation, AShortWindowOfGrpoIsAsLongAsItIs) {
  expect_within(
      replay_changed("grpo_e2e_kl_tiny", [](json& golden) { golden["hyper"]["gradient_accumulation_steps"] = 4; }));
  expect_within(replay_changed("grpo_e2e_dapo_beta0_tiny", [](json& golden) {
    golden["hyper"].update({{"gradient_accumulation_steps", 2}, {"steps_per_generation", 1}});
  }));
  json golden = read_small("grpo_e2e_kl_tiny");
  const double half = golden["steps"][4]["loss"];
  golden["steps"].erase(size_t{5});
  EXPECT_NEAR(ours_at(golden, "/steps/4/loss"), half, 1e-4) << "the file ends before the update";
  golden["steps"][4]["grad_norm"] = 1.0;
  EXPECT_NEAR(ours_at(golden, "/steps/4/loss"), 2 * half, 1e-4);
}

TEST(Accumulation, VariantsOfDpoLogTheMeanOverAnUpdate) {
  json golden = read_small("dpo_variants_tiny");
  golden["variants"] = {{"sigmoid", golden["variants"]["sigmoid"]}};
  golden["variants"]["sigmoid"]["steps"][1]["metrics"] = {{"rewards/chosen", 0.0}};
  const std::string place = "/variants/sigmoid/steps/1/metrics/rewards~1chosen";
  const json first = golden["batches"][0], second = golden["batches"][1];
  const double of_second = ours_at(golden, place);
  golden["batches"] = json::array({first, first});
  const double of_first = ours_at(golden, place);
  EXPECT_GT(std::abs(of_first - of_second), 1e-3);
  golden["batches"] = json::array({first, first, second, first});
  golden["hyper"]["gradient_accumulation_steps"] = 2;
  EXPECT_NEAR(ours_at(golden, place), (of_first + of_second) / 2, 1e-4);
}

TEST(Accumulation, AShortWindowOfVariantsOfDpoIsAsLongAsItIs) {
  expect_within(replay_changed("dpo_variants_tiny", [](json& golden) {
    const json& batches = golden["batches"];
    golden["batches"] = json::array({batches[0], batches[0], batches[1]});
    golden["hyper"]["gradient_accumulation_steps"] = 2;
  }));
}

}  // namespace
}  // namespace collimate::golden
