#include "collimate/plan/inputs/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"
#include "tests/support/plan/inputs/sample_request.h"

namespace collimate::plan {
namespace {

template <class Check>
std::string refusal(const Request& request, Check check) {
  return base::message_of([&] { check(request); });
}

TEST(Request, UpdatesAndMicroBatchesHaveRows) {
  Request request = request_for("llama2-7b", "8xA100-80", "ppo,4,512x512");
  EXPECT_EQ(refusal(request, check_workload),
            "[--updates] expected at most the 4 rows of an iteration, got 8; try --updates 4");
  request.load.updates = 4;
  EXPECT_EQ(refusal(request, check_workload), "");
  request.micro_batch = 5000;
  EXPECT_THAT(refusal(request, check_workload), testing::EndsWith("got 5000; try --micro-batch 4"));
}

// OPT has 2,048; where all models have rotary positions there is no limit.
TEST(Request, RowsHavePositions) {
  Request request = request_for("llama2-7b", "8xA100-80", "ppo,64,512x100000");
  EXPECT_EQ(refusal(request, check_positions), "");
  request.models["reward"] = shape::find_outline("opt-350m");
  EXPECT_EQ(refusal(request, check_positions),
            "[--completion] expected rows of at most the 2048 positions of reward (opt-350m), got 512 + 100000 tokens; "
            "try --completion 1536");
  request.load.completion = Lengths::fixed(1536);
  EXPECT_EQ(refusal(request, check_positions), "");
  request.load.prompt = Lengths::fixed(4096);
  EXPECT_THAT(refusal(request, check_positions), testing::EndsWith("try --prompt 1024 --completion 1024"));
}

}  // namespace
}  // namespace collimate::plan
