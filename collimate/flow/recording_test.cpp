#include "collimate/flow/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collimate/base/log.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/host/file_io.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/toy_modules.h"
#include "tests/support/graph/replay.h"

namespace collimate::flow {
namespace {

namespace fs = std::filesystem;

class LostRecording : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(directory_); }

  // Trained rewards by iteration of four, those that a run from `resume` has left to do.
  std::map<int64_t, std::vector<float>> run_from(const std::string& resume) const {
    std::map<int64_t, std::vector<float>> rewards;
    RunOptions options = toy::run_options(4);
    options.directory = directory_;
    options.schedule.save_every = 1;
    options.resume = resume;
    options.on_iteration = [&](const IterationResult& result) {
      rewards[result.iteration] = result.batches.at("reward.score").all(batch::kReward);
    };
    const graph::Graph graph = toy::flow();
    const Registry registry = toy::registry();
    run(graph, graph::flattening(graph, 1), registry, options);
    return rewards;
  }
  // Goes on from the checkpoint after the third iteration; what is logged.
  std::string go_on(const std::map<int64_t, std::vector<float>>& whole) const {
    const std::string log = directory_ + "/log";
    {
      const base::LogFile file(log);
      const auto rest = run_from(Checkpoints(directory_).list().front());
      EXPECT_EQ(rest.size(), 1U);
      EXPECT_EQ(rest.at(3), whole.at(3));
    }
    return host::read_file(log);
  }

  const std::string directory_ = testing::TempDir() + "collimate-lost-recording-" + std::to_string(getpid());
  const std::string events_ = directory_ + "/events.jsonl";
};

TEST_F(LostRecording, ARunGoesOnWithANewOneThatReplays) {
  const auto whole = run_from("");
  const std::string all = host::read_file(events_);
  const std::pair<const char*, std::function<void()>> losses[] = {
      {"No such file or directory", [&] { fs::remove(events_); }},
      {"10 bytes", [&] { fs::resize_file(events_, 10); }},
      {"others", [&] { std::ofstream(events_) << '#' << all.substr(1); }}};
  for (const auto& [got, lose] : losses) {
    lose();
    EXPECT_THAT(go_on(whole), testing::HasSubstr(fmt::format(
                                  "bytes that the checkpoint lists, got {}: a new recording begins here", got)));
    const std::string recording = host::read_file(events_);
    EXPECT_EQ(graph::check_recording(recording), "");
    const auto header = nlohmann::json::parse(recording.substr(0, recording.find('\n')));
    EXPECT_EQ(header.at("state").at("front"), 3) << "not the schedule as it was loaded";
  }
}

// The new recording is gone on with as any other.
TEST_F(LostRecording, TheNextResumeGoesOnWithTheNewOne) {
  const auto whole = run_from("");
  fs::remove(events_);
  go_on(whole);
  const std::string first = host::read_file(events_);
  run_from(Checkpoints(directory_).latest());
  const std::string second = host::read_file(events_);
  EXPECT_EQ(graph::check_recording(second), "");
  // The text goes up to the line of the save that the checkpoint is of: its header's state and all steps.
  const size_t save = first.rfind("\"save\"");
  ASSERT_NE(save, std::string::npos);
  const std::string kept = first.substr(0, first.find('\n', save) + 1);
  EXPECT_EQ(second.substr(0, kept.size()), kept);
  EXPECT_GT(second.size(), kept.size());
}

TEST_F(LostRecording, ACopyThatFailsNamesBothFiles) {
  run_from("");
  const std::string into = directory_ + "/gone/events.jsonl";
  const std::string message =
      base::message_of<base::RunError>([&] { Recording(into, events_, {.bytes = 10, .crc32c = 0}); });
  EXPECT_EQ(message, fmt::format("[{}] expected a copy of {}, got No such file or directory", into, events_));
}

}  // namespace
}  // namespace collimate::flow
