#include "collimate/flow/memory_ledger.h"

#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"

namespace collimate::flow {
namespace {

TEST(MemoryLedger, SharedItemsCountOnceAndWhatNobodyPlannedIsShown) {
  MemoryLedger ledger(31, 0);
  PlannedTurns planned;
  planned.plan({{"policy/master", 1000}, {"scratch", 300}});
  planned.plan({{"policy/master", 1000}, {"scratch", 500}, {"kv_cache", 2000}});
  ledger.plan(planned);
  EXPECT_EQ(ledger.planned_bytes(), 3500);
  ledger.begin_call();
  {
    const tensor::MemoryScope scope(31, "kv_cache");
    const tensor::Buffer cache(1500);
    const tensor::MemoryScope other(31, "rows");
    const tensor::Buffer rows(700);
  }
  const int64_t both = tensor::allocated_bytes(1500) + tensor::allocated_bytes(700);
  EXPECT_EQ(ledger.call_bytes(), both);
  ledger.begin_call();
  EXPECT_EQ(ledger.call_bytes(), 0);
  const nlohmann::json report = ledger.report();
  EXPECT_EQ(report.at("peak_bytes"), both);
  EXPECT_EQ(report.at("planned_bytes"), 3500);
  ASSERT_EQ(report.at("items").size(), 4U);
  EXPECT_EQ(
      report.at("items")[0],
      (nlohmann::json{{"item", "kv_cache"}, {"planned_bytes", 2000}, {"peak_bytes", tensor::allocated_bytes(1500)}}));
  EXPECT_EQ(report.at("items")[3].at("item"), "rows");
  EXPECT_EQ(report.at("items")[3].at("planned_bytes"), 0);
}

TEST(MemoryLedger, APlanAboveTheBudgetNamesItsItems) {
  MemoryLedger ledger(32, 2000);
  PlannedTurns planned;
  planned.plan({{"scratch", 500}, {"kv_cache", 1400}});
  ledger.plan(planned);
  ledger.check_budget();
  planned.plan({{"policy/optimizer", 8000}});
  ledger.plan(planned);
  EXPECT_EQ(base::message_of([&] { ledger.check_budget(); }),
            "[memory of device 32] expected at most 1.95 KiB (run.memory_budget), got a plan of 9.67 KiB (policy: "
            "optimizer state (two moments) 7.81 KiB, keys and values (the KV cache) 1.37 KiB, working memory of single "
            "operations 500 B); try run.memory_budget: 1 or fewer rollout.cache_blocks");
}

TEST(MemoryLedger, OfModulesThatTakeTurnsEachHasToFitByItself) {
  MemoryLedger ledger(34, 2000);
  PlannedTurns planned;
  planned.plan({{"scratch", 500}});
  planned.plan_turn({{"policy", 1400}});
  planned.plan_turn({{"trainer", 1500}, {"scratch", 400}});
  EXPECT_EQ(planned.bytes(0), 2000) << "without a budget one is there at a time";
  ledger.plan(planned);
  ledger.check_budget();
  EXPECT_EQ(ledger.planned_bytes(), 2000);
  planned.plan_turn({{"judge", 1501}});
  ledger.plan(planned);
  EXPECT_EQ(base::message_of([&] { ledger.check_budget(); }),
            "[memory of device 34] expected at most 1.95 KiB (run.memory_budget), got a plan of 1.95 KiB (judge 1.47 "
            "KiB, working memory of single operations 500 B); try run.memory_budget: 1");
}

TEST(MemoryLedger, TheBudgetEndsWithIt) {
  const tensor::MemoryScope scope(33, "rows");
  {
    MemoryLedger ledger(33, 1000);
    EXPECT_THROW(tensor::Buffer(5000), base::RunError);
  }
  const tensor::Buffer rows(5000);
}

}  // namespace
}  // namespace collimate::flow
