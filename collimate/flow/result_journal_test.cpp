#include "collimate/flow/result_journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "collimate/base/log.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/executor.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/toy_modules.h"

namespace collimate::flow {
namespace {

// Takes every update twice: from iteration 1 on the completions are others, under the same uids.
class EagerTrainer : public toy::Trainer {
 public:
  void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info) override {
    std::vector<Batch> twice(updates.begin(), updates.end());
    twice.insert(twice.end(), updates.begin(), updates.end());
    Trainer::train_step(function, twice, info);
  }
};

class ResultJournalTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The toy flow with random rewards; the rewards that it trained on.
  std::vector<float> run_toy(const std::string& replay, int64_t iterations = 2,
                             const std::string& trainer = "trainer") {
    std::vector<float> rewards;
    RunOptions options = toy::run_options(iterations);
    options.modules["trainer"] = {trainer, nullptr};
    options.modules["reward"] = {"reward", {{"random", true}}};
    options.directory = replay.empty() ? directory_ : "";
    options.replay = replay;
    options.on_iteration = [&](const IterationResult& result) {
      const auto some = result.batches.at("reward.score").all(batch::kReward);
      rewards.insert(rewards.end(), some.begin(), some.end());
    };
    const graph::Graph graph = toy::flow(false);
    Registry registry = toy::registry();
    registry.add("eager", [](const nlohmann::json&) { return std::make_unique<EagerTrainer>(); });
    run(graph, graph::flattening(graph, 1), registry, options);
    return rewards;
  }
  std::string journal() const { return directory_ + "/journal.bin"; }

  const std::string directory_ = testing::TempDir() + "collimate-journal-" + std::to_string(getpid());
};

TEST_F(ResultJournalTest, ServesWhatWasAskedAlone) {
  const ResultJournal::Key key{3, "reward.score", 7, 11};
  std::filesystem::create_directories(directory_);
  Batch row;
  row.set(batch::kReward, std::vector<float>{0.5F});
  {
    ResultJournal written(journal(), "");
    written.add_call({key}, {.sequence = 4});
    written.add(key, row);
    written.add_dropped({3, "reward.score", 8, 12});
    written.commit();
  }
  const ResultJournal resumed(journal(), "");
  EXPECT_EQ(resumed.find(key)->row.get(batch::kReward, 0), 0.5F);
  EXPECT_TRUE(resumed.find({3, "reward.score", 8, 12})->dropped);
  EXPECT_EQ(resumed.call_of(key)->sequence, 4);
  EXPECT_EQ(resumed.next_sequence(3, "reward.score"), 5);
  const ResultJournal::Key other{3, "reward.score", 7, 10};
  EXPECT_FALSE(resumed.find(other).has_value()) << "asked again";
  EXPECT_EQ(resumed.call_of(other), nullptr);

  const ResultJournal replayed("", journal());
  EXPECT_EQ(replayed.find(key)->row.get(batch::kReward, 0), 0.5F);
  EXPECT_EQ(
      base::message_of([&] { replayed.find(other); }),
      "[--replay, iteration 4, node reward.score, uid 7] expected the row that the journal answered, got another; "
      "try --replay with the journal of this config");
  EXPECT_EQ(base::message_of([&] {
              replayed.find({3, "reward.score", 9, 11});
            }),
            "[--replay, iteration 4, node reward.score, uid 9] expected a row that the journal answers, got one that "
            "it lacks; try --replay with the journal of this config");
  ResultJournal later(journal(), "");
  later.forget_before(3);
  EXPECT_TRUE(later.find(key).has_value());
  later.forget_before(4);
  EXPECT_FALSE(later.find(key).has_value());
  EXPECT_EQ(later.call_of(key), nullptr);
  EXPECT_EQ(later.next_sequence(3, "reward.score"), 0);
}

TEST_F(ResultJournalTest, WhatIsCutOffATornTailIsLogged) {
  std::filesystem::create_directories(directory_);
  const auto open = [&] {
    ResultJournal opened(journal(), "");
    opened.add_dropped({3, "reward.score", 8, 12});
    opened.commit();
  };
  open();
  std::ofstream(journal(), std::ios::app | std::ios::binary) << std::string(77, 'x');
  const std::string path = directory_ + "/log";
  {
    const base::LogFile log(path);
    open();
    open();
  }
  std::ifstream file(path);
  std::string line, more;
  std::getline(file, line);
  EXPECT_TRUE(
      line.ends_with(" warning " + journal() +
                     ": cut off 77 bytes after the last whole record, which was not written to its end; what they "
                     "answered is asked again"))
      << line;
  EXPECT_FALSE(std::getline(file, more)) << more;
}

TEST_F(ResultJournalTest, AReplayNeedsTheJournalOfItsOwnRows) {
  const std::vector<float> drawn = run_toy("");
  EXPECT_EQ(run_toy(journal()), drawn);
  EXPECT_NE(base::message_of([&] { run_toy(journal(), 3); }).find("[--replay, iteration 3, node reward.score, uid "),
            std::string::npos);
  const std::string other = base::message_of([&] { run_toy(journal(), 2, "eager"); });
  EXPECT_TRUE(other.starts_with("[--replay, iteration 2, node reward.score, uid ")) << other;
  EXPECT_TRUE(
      other.ends_with("] expected the row that the journal answered, got another; try --replay with the journal "
                      "of this config"))
      << other;
}

}  // namespace
}  // namespace collimate::flow
