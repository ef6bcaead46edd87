#include "collimate/plan/show/columns.h"

#include <gtest/gtest.h>

#include <sstream>

#include "collimate/plan/show/comparison.h"
#include "collimate/plan/show/sweep.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

TEST(Columns, WordsStandBesideTheHeadOrBelowIt) {
  EXPECT_EQ(hanging("head: ", "one two three four five six", 24 + 6), "head: one two three four five\n      six\n");
  EXPECT_EQ(hanging("a head of twenty two : ", "one two three four", 40),
            "a head of twenty two :\n      one two three four\n");
  EXPECT_EQ(hanging("  ", {"A b", "C d"}, 80, "  "), "  A b  C d\n");
  EXPECT_EQ(hanging("bar  ", "", 80), "bar\n");
  EXPECT_EQ(hanging("", "longer-than-the-line-has-room-for ab", 30), "longer-than-the-line-has-room-for\nab\n");
}

TEST(Columns, CountCharactersNotBytes) {
  EXPECT_EQ(width_of("tp 1 · pp 2"), 11);
  EXPECT_EQ(cut_to("tp 1 · pp 2", 11), "tp 1 · pp 2");
  EXPECT_EQ(cut_to("tp 1 · pp 2", 7), "tp 1 ·…");
}

// Every text about a plan fits the width that it is given.
TEST(Columns, NoLineOfAPlanIsWiderThanAsked) {
  Request request = request_for("llama2-7b", "2x8xA100-80+8xH100-80", "ppo,512,512x512");
  request.keep = 6;
  request.load.staleness = 1;
  const SearchResult result = search_within_staleness(request);
  ASSERT_GT(result.plans.size(), 1U);
  const Plan &best = result.plans[0], &other = result.plans[1];
  const PlanSimulation simulated = simulate_plan(request, other);
  const std::vector<Variant> variants = sweep(request, "staleness=0,1");
  for (const int columns : {80, 100, 120, 180}) {
    std::istringstream lines(
        search_text(request, result, 100, columns) + phase_memory_text(request, best, columns) +
        comparison_text(request, best, {other, simulated, "a-file-of-another-plan.yaml"}, columns) +
        sweep_text(variants, 100, columns));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), columns) << line;
  }
}

}  // namespace
}  // namespace collimate::plan
