#include "collimate/base/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"
#include "tests/support/fault_control.h"

namespace collimate::base {
namespace {

TEST(FaultDeathTest, KillsOnTheNamedPassage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process reads the variable anew
  const auto pass = [](int times) {
    setenv("COLLIMATE_TEST_KILL_AT", "place:3", 1);
    for (int i = 0; i < times; ++i) {
      fault_point("elsewhere");
      fault_point("place");
    }
    std::exit(0);
  };
  EXPECT_EXIT(pass(2), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(pass(3), ::testing::KilledBySignal(SIGKILL), "");
}

TEST(FaultDeathTest, TakesOneUlpAtTheNamedPlace) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto pass = [] {
    setenv("COLLIMATE_TEST_NUDGE_AT", "place", 1);
    const bool right = fault_value("elsewhere", -1.0F) == -1.0F && fault_value("place", -1.0F) == -1.0F - 0x1p-23F;
    std::exit(right ? 0 : 1);
  };
  EXPECT_EXIT(pass(), ::testing::ExitedWithCode(0), "");
}

TEST(Fault, TakesOneUlpFromTheLargestOfEachRowInThatPhase) {
  const std::vector<float> right = {1, -2, 2, 9, 0.5F, 0.25F, -0.125F, 9};  // two rows of three, with one more between
  const auto passed = [&](std::string_view place, std::string_view phase) {
    const FaultPhase of(phase);
    std::vector<float> values = right;
    fault_rows(place, values.data(), 2, 3, 4);
    return values;
  };
  nudge_for_tests("linear@decode");
  EXPECT_EQ(passed("linear", "prefill"), right);
  EXPECT_EQ(passed("rope", "decode"), right);
  std::vector<float> wrong = right;
  wrong[2] = 2 - 0x1p-23F;
  wrong[4] = 0.5F - 0x1p-25F;
  EXPECT_EQ(passed("linear", "decode"), wrong);
  {
    const FaultPhase outer("decode");
    EXPECT_EQ(passed("linear", "training"), right);
    EXPECT_LT(fault_value("linear", 1), 1) << "the outer phase is back";
  }
  EXPECT_EQ(fault_value("linear", 1), 1);
  nudge_for_tests("linear");
  EXPECT_EQ(passed("linear", "training"), wrong);
  EXPECT_TRUE(nudged("linear"));
  nudge_for_tests("");
  EXPECT_EQ(passed("linear", "decode"), right);
  EXPECT_FALSE(nudged("linear"));
}

TEST(Fault, TakesAnUlpOfBf16) {
  nudge_for_tests("linear@decode/bf16");
  EXPECT_EQ(fault_value("linear", 1), 1);
  const FaultPhase decode("decode");
  EXPECT_EQ(fault_value("linear", 1), 1 - 0x1p-8F);
  EXPECT_EQ(fault_value("linear", 1.25F), 1.25F - 0x1p-7F);
  EXPECT_EQ(fault_value("linear", -1), -1 - 0x1p-7F);
  EXPECT_LT(fault_value("linear", 0), 0);
  nudge_for_tests("");
  EXPECT_EQ(fault_value("linear", 1), 1);
}

TEST(Fault, DiskLimitGivesWhatIsLeft) {
  limit_disk_for_tests(10);
  EXPECT_EQ(allowed_disk_bytes(7), 7u);
  EXPECT_EQ(allowed_disk_bytes(7), 3u);
  EXPECT_EQ(allowed_disk_bytes(1), 0u);
  limit_disk_for_tests(std::nullopt);
  EXPECT_EQ(allowed_disk_bytes(1000), 1000u);
}

TEST(Fault, AnswersEndBeforeWhoGivesThem) {
  std::atomic<bool> inside{false}, may_end{false}, ended{false};
  std::thread counting, ending;
  {
    const CountAnswers answers([&](std::string_view, int64_t count) {
      inside = true;
      while (!may_end) std::this_thread::yield();
      ended = true;
      return count;
    });
    counting = std::thread([] { fault_count("here", 1); });
    while (!inside) std::this_thread::yield();
    ending = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which the answers' owner could end
      may_end = true;
    });
  }
  EXPECT_TRUE(ended);
  counting.join();
  ending.join();
}

TEST(Error, MessageFormAndExitCodes) {
  EXPECT_EQ(expectation("a.yaml:3", "X", "Y"), "[a.yaml:3] expected X, got Y");
  EXPECT_EQ(expectation("a.yaml:3", "X", "Y", "Z"), "[a.yaml:3] expected X, got Y; try Z");
  EXPECT_EQ(InputError("").exit_code(), 2);
  EXPECT_EQ(RunError("").exit_code(), 1);
  EXPECT_EQ(StoppedError("").exit_code(), 3);
  EXPECT_EQ(GuardError("").exit_code(), 4);
  const std::string error = message_of<std::logic_error>([&] { COLLIMATE_CHECK(1 + 1 == 3, "sum {}", 2); });
  EXPECT_THAT(error, testing::HasSubstr("broken invariant: 1 + 1 == 3: sum 2"));
}

}  // namespace
}  // namespace collimate::base
