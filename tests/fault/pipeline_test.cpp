#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>

#include "collimate/recipe/directory_lock.h"
#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kFolders[] = {"1-sft", "2-reward", "3-ppo"};

// Pipelines of two short steps and PPO on the small task, from random weights.
class Pipelines : public testing::Test {
 protected:
  Pipelines() { write_small_task(scratch_.path()); }

  host::CommandResult call(const std::string& output, std::vector<std::string> more = {},
                           const Environment& environment = {}) {
    std::vector<std::string> words = {"pipeline",         "--actor-model", scratch_ / "start",       "--reward-model",
                                      scratch_ / "start", "--data",        scratch_ / "pairs.jsonl", "--output",
                                      directory(output)};
    for (const char* set :
         {"all.run.iterations=2", "all.run.epochs=null", "all.run.save_every=1", "all.run.threads=1",
          "all.run.samples_every=1", "sft.train.samples_per_update=4", "reward.train.samples_per_update=8",
          "sft.models.policy.from_scratch=true", "reward.models.policy.from_scratch=true",
          "ppo.rollout.prompts_per_iteration=4", "ppo.rollout.prompt_tokens=8", "ppo.rollout.completion_tokens=4"})
      words.insert(words.end(), {"--set", set});
    words.insert(words.end(), more.begin(), more.end());
    return run_collimate(words, environment);
  }
  void finish(const std::string& output, const std::vector<std::string>& more = {}) {
    const host::CommandResult result = call(output, more);
    ASSERT_TRUE(result.status.ok()) << result.status.description() << ": " << result.errors;
  }
  // Weights, metrics and samples of every step.
  std::map<std::string, std::string> left_in(const std::string& output) const {
    std::map<std::string, std::string> left;
    for (const std::string folder : kFolders) {
      const std::string run = directory(output) + "/" + folder;
      left[folder + "/model"] = read_text(run + "/model/model.safetensors");
      left[folder + "/metrics"] = fmt::format("{}", fmt::join(lasting_metrics(run), "\n"));
      for (const auto& entry : fs::recursive_directory_iterator(run + "/samples"))
        if (entry.is_regular_file()) left[folder + "/" + entry.path().filename().string()] = read_text(entry.path());
    }
    return left;
  }
  nlohmann::json summary(const std::string& output) const {
    return nlohmann::json::parse(read_text(directory(output) + "/summary.json"));
  }
  std::string directory(const std::string& output) const { return scratch_ / output; }

  const Scratch scratch_{"pipelines"};
};

TEST_F(Pipelines, KilledInEachStepGoesOnWithTheSameBits) {
  ASSERT_NO_FATAL_FAILURE(finish("whole"));
  const auto whole = left_in("whole");
  for (const auto& [name, bytes] : whole) EXPECT_FALSE(bytes.empty()) << name;
  // Counted over the whole process: the second step's updates follow the first one's two.
  for (const char* place :
       {"policy.train:2", "policy.train:4", "value.train:2", "policy.generate:1", "directory.after_rename:3"}) {
    const host::CommandResult killed = call(place, {}, {{"COLLIMATE_TEST_KILL_AT", place}});
    ASSERT_EQ(killed.status.signal, SIGKILL) << place << ": " << killed.status.description() << killed.errors;
    ASSERT_NO_FATAL_FAILURE(finish(place));
    const auto rest = left_in(place);
    ASSERT_EQ(rest.size(), whole.size()) << place;
    for (const auto& [name, bytes] : whole) EXPECT_TRUE(rest.at(name) == bytes) << place << ": other " << name;
  }
}

TEST_F(Pipelines, OneReportTellsOfAllStepsAndStepsRunAlone) {
  const host::CommandResult too_early = call("steps", {"--step", "3"});
  EXPECT_EQ(too_early.status.code, 2);
  EXPECT_THAT(too_early.errors, HasSubstr("[--step] expected step 1 before step 3"));
  EXPECT_FALSE(fs::exists(directory("steps")));
  ASSERT_NO_FATAL_FAILURE(finish("steps", {"--step", "2"}));
  EXPECT_FALSE(fs::exists(directory("steps") + "/1-sft"));
  EXPECT_FALSE(summary("steps").at("done"));
  EXPECT_THAT(read_text(directory("steps") + "/report.html"),
              AllOf(HasSubstr("1 of 3 steps done"), HasSubstr("This step has not begun.")));
  const auto trained = fs::last_write_time(directory("steps") + "/2-reward/metrics.jsonl");
  ASSERT_NO_FATAL_FAILURE(finish("steps"));
  EXPECT_EQ(fs::last_write_time(directory("steps") + "/2-reward/metrics.jsonl"), trained) << "it had ended";
  ASSERT_NO_FATAL_FAILURE(finish("whole"));
  EXPECT_EQ(left_in("steps"), left_in("whole"));
  const nlohmann::json told = summary("steps");
  EXPECT_TRUE(told.at("done"));
  ASSERT_EQ(told.at("steps").size(), 3U);
  for (const auto& step : told.at("steps")) EXPECT_FALSE(step.at("last_evaluation").empty()) << step.dump();
  EXPECT_TRUE(told.at("steps")[1].at("last_evaluation").contains("val/accuracy"));
  const std::string page = read_text(directory("steps") + "/report.html");
  for (const std::string folder : kFolders) EXPECT_THAT(page, HasSubstr("href=\"" + folder + "/report.html\""));
  EXPECT_THAT(page, AllOf(HasSubstr("3 of 3 steps done"), HasSubstr("held-out accuracy"),
                          HasSubstr("completion length"), HasSubstr("</html>")));
  EXPECT_TRUE(run_collimate({"report", directory("steps")}).status.ok());
  EXPECT_EQ(read_text(directory("steps") + "/report.html"), page);
}

TEST_F(Pipelines, WrongInputOfAnyStepIsKnownBeforeTheFirst) {
  for (const auto& [set, expected] :
       {std::pair("ppo.train.learning_rate=fast", "3-ppo: [--set ppo.train.learning_rate"),
        {"ppo.rollout.completion_tokens=64", "3-ppo: "},
        {"reward.data.max_tokens=2", "2-reward: "},
        {"data_split='1,0,0'", "none for 2-reward"},
        {"deployment_type=multi_node", "single_gpu or single_node"}}) {
    const host::CommandResult refused = call("refused", {"--set", set});
    EXPECT_EQ(refused.status.code, 2) << set << refused.errors;
    EXPECT_THAT(refused.errors, HasSubstr(expected)) << set;
    EXPECT_FALSE(fs::exists(directory("refused"))) << set;
  }
  write_text(scratch_ / "other/file.txt", "mine");
  EXPECT_THAT(call("other").errors, HasSubstr("which holds other files"));
}

TEST_F(Pipelines, ChangesThatARunDoesNotTakeAreNamedOnResume) {
  ASSERT_NO_FATAL_FAILURE(finish("run", {"--step", "1"}));
  const host::CommandResult rate = call("run", {"--set", "sft.train.learning_rate=0.5"});
  EXPECT_EQ(rate.status.code, 2);
  EXPECT_THAT(rate.errors, HasSubstr("train.learning_rate: 2e-05 -> 0.5"));
  const host::CommandResult split = call("run", {"--data-split", "1,1,1"});
  EXPECT_EQ(split.status.code, 2);
  EXPECT_THAT(split.errors, HasSubstr("data_split: \"2,4,4\" -> \"1,1,1\""));
  EXPECT_FALSE(fs::exists(directory("run") + "/2-reward")) << "no step was begun";
}

TEST_F(Pipelines, ASecondOneInTheDirectoryIsRefused) {
  fs::create_directories(directory("shared"));
  const host::FileDescriptor first = recipe::lock_directory(directory("shared"));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--step", "2"}, {"--dry-run"}}) {
    const host::CommandResult second = call("shared", more);
    EXPECT_EQ(second.status.code, 2);
    EXPECT_THAT(second.errors,
                HasSubstr(fmt::format("[--output] expected a directory that no run is writing now, got {}, "
                                      "which process {} is writing",
                                      directory("shared"), ::getpid())));
  }
  EXPECT_FALSE(fs::exists(directory("shared") + "/data")) << "it has made a split";
}

TEST_F(Pipelines, ADryRunLeavesNothing) {
  const host::CommandResult checked = call("dry", {"--dry-run"});
  EXPECT_TRUE(checked.status.ok()) << checked.errors;
  EXPECT_THAT(checked.output, AllOf(HasSubstr("1-sft: "), HasSubstr("2-reward: "), HasSubstr("3-ppo: ")));
  EXPECT_FALSE(fs::exists(directory("dry")));
}

}  // namespace
}  // namespace collimate::test
