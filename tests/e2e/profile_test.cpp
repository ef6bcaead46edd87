#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// Whole runs with log.profile.
class ProfiledRun : public OnSmallTask {
 protected:
  ProfiledRun() : OnSmallTask("profile") {}
  std::string model_of(const std::string& name, const std::vector<std::string>& sets) {
    train_text(small_config("grpo", scratch_.path()), scratch_ / name, sets);
    return model_bytes(scratch_ / name);
  }
};

TEST_F(ProfiledRun, SaysWhereTheSlowestIterationsTimeWent) {
  const std::string plain = model_of("plain", {});
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "plain/profile.txt"));
  EXPECT_EQ(model_of("profiled", {"log.profile=true"}), plain) << "the numbers are the same";
  const std::string table = read_text(scratch_ / "profiled/profile.txt");
  EXPECT_THAT(table, ContainsRegex("^iteration [123], the slowest of 3: "));
  EXPECT_THAT(table, ContainsRegex("\npolicy[a-z_.]* \\(worker 0\\) "));
  EXPECT_THAT(table, ContainsRegex("\n  linear +[0-9]+ "));
  EXPECT_THAT(table, ContainsRegex("\n  linear_grad_weight +[0-9]+ "));
  EXPECT_THAT(table, ContainsRegex("\n  draw_rows +[0-9]+ "));
  EXPECT_THAT(table, ContainsRegex("\nreward.score \\(worker [0-9]+\\) "));
  EXPECT_THAT(table, HasSubstr("\nwhile no function ran "));
  EXPECT_THAT(read_text(scratch_ / "profiled/logs/rank-0.log"), HasSubstr(table.substr(0, table.size() - 1)));
}

TEST_F(ProfiledRun, OfWorkersThatAreProcesses) {
  recipe::TrainCall call;
  call.worker_command = {collimate_program(), "worker"};
  train_text(small_config("grpo", scratch_.path()), scratch_ / "run", {"log.profile=true", "cluster=local-processes"},
             call);
  EXPECT_THAT(read_text(scratch_ / "run/profile.txt"), ContainsRegex("\n  linear +[0-9]+ "));
}

}  // namespace
}  // namespace collimate::test
