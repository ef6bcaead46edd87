#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/e2e/run_support.h"
#include "tests/support/base/error_of.h"

namespace collimate::test {
namespace {

// Runs of 72 prompts in iterations of 30, so that 12 are left at the end of an epoch.
class LastBatch : public OnSmallTask {
 protected:
  LastBatch() : OnSmallTask("last-batch") {}

  void run(const std::string& output, const std::string& last_batch, int iterations) {
    train_text(small_config("grpo", scratch_.path()), scratch_ / output,
               {"rollout.prompts_per_iteration=30", "data.last_batch=" + last_batch,
                fmt::format("run.iterations={}", iterations)});
  }
};

TEST_F(LastBatch, ARunThatGoesOnEqualsAWholeOne) {
  std::set<std::string> models;
  for (const char* last_batch : {"cycle", "drop", "retain"}) {
    const std::string whole = fmt::format("{}-whole", last_batch), parts = fmt::format("{}-parts", last_batch);
    run(whole, last_batch, 5);
    for (const int iterations : {2, 3, 5}) run(parts, last_batch, iterations);
    EXPECT_EQ(model_bytes(scratch_ / parts), model_bytes(scratch_ / whole)) << last_batch;
    models.insert(model_bytes(scratch_ / whole));
  }
  EXPECT_EQ(models.size(), 3U) << "each reads other rows";
  EXPECT_THAT(base::message_of([&] { run("drop-parts", "retain", 7); }), testing::HasSubstr("data.last_batch"));
}

}  // namespace
}  // namespace collimate::test
