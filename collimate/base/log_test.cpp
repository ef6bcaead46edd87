#include "collimate/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/progress.h"

namespace collimate::base {
namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class Logging : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    ::testing::internal::CaptureStderr();
    file_.emplace(path_, log_);
  }
  void TearDown() override {
    ::testing::internal::GetCapturedStderr();
    std::filesystem::remove(path_);
  }

  const std::filesystem::path path_ = std::filesystem::path(::testing::TempDir()) / "log_test.log";
  Log log_;
  std::optional<LogFile> file_;
};

TEST_F(Logging, LineHasTimeLevelAndPrefix) {
  log_.write(LogLevel::kInfo, "plain");
  {
    const LogPrefix outer("rank 0");
    const LogPrefix inner("rank 0 policy");
    log_.write(LogLevel::kWarning, "inside");
  }
  log_.write(LogLevel::kError, "shown");
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], ::testing::MatchesRegex("[0-9]+:[0-9]+:[0-9]+\\.[0-9]+ info    plain"));
  EXPECT_THAT(lines[1], ::testing::EndsWith(" warning [rank 0 policy] inside"));
  EXPECT_THAT(lines[2], ::testing::EndsWith(" error   shown"));
}

TEST_F(Logging, ARecordedWarningSaysSoOnce) {
  log_.record("warning: too few rows");
  log_.record("no warning: fine");
  EXPECT_THAT(lines_of(path_), ::testing::ElementsAre(::testing::EndsWith(" warning too few rows"),
                                                      ::testing::EndsWith(" info    no warning: fine")));
}

TEST_F(Logging, WhatSeveralPartsMeetIsWrittenOnceInEachFile) {
  using testing::ElementsAre, testing::EndsWith;
  log_.write_once(LogLevel::kWarning, "a", "first");
  log_.write_once(LogLevel::kWarning, "a", "second");
  log_.write_once(LogLevel::kWarning, "b", "third");
  EXPECT_THAT(lines_of(path_), ElementsAre(EndsWith(" warning first"), EndsWith(" warning third")));
  file_.reset();
  file_.emplace(path_, log_);
  log_.write_once(LogLevel::kWarning, "a", "of another run");
  EXPECT_THAT(lines_of(path_), ElementsAre(EndsWith("first"), EndsWith("third"), EndsWith("of another run")));
}

TEST_F(Logging, WhatOtherProcessesMeetIsWrittenOnce) {
  const auto written = [](const std::string& key, const std::string& text) {
    Log log;
    log.mark_for_reader();
    testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
    log.write(LogLevel::kInfo, "before " + text);
    log.write_once(LogLevel::kWarning, key, text + "\nof two lines");
    log.write(LogLevel::kInfo, "after " + text);
    const std::string shown = testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
    return shown;
  };
  PassedLines one(log_), other(log_);
  const auto pass = [](PassedLines& lines, const std::string& text) {
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) lines(line);
  };
  pass(one, written("a", "x"));
  pass(other, written("a", "y"));
  log_.write_once(LogLevel::kWarning, "a", "z");
  pass(other, written("b", "z"));
  using testing::EndsWith;
  EXPECT_THAT(lines_of(path_),
              testing::ElementsAre(EndsWith("info    before x"), EndsWith("warning x"), "of two lines",
                                   EndsWith("after x"), EndsWith("before y"), EndsWith("after y"), EndsWith("before z"),
                                   EndsWith("warning z"), "of two lines", EndsWith("after z")));
}

TEST_F(Logging, FilesGetLinesWhileTheyLive) {
  const std::filesystem::path second = path_.string() + ".2";
  std::filesystem::remove(second);
  {
    const LogFile other(second, log_);
    log_.write(LogLevel::kInfo, "both");
  }
  const std::filesystem::path third = path_.string() + ".3";
  std::ofstream takes_its_number(third);
  log_.record("recorded");
  EXPECT_THAT(lines_of(third), ::testing::IsEmpty());
  file_.reset();
  log_.record("after");
  EXPECT_THAT(lines_of(path_), ::testing::ElementsAre(::testing::EndsWith("both"), ::testing::EndsWith("recorded")));
  EXPECT_THAT(lines_of(second), ::testing::ElementsAre(::testing::EndsWith("both")));
  std::filesystem::remove(second);
  std::filesystem::remove(third);
}

TEST_F(Logging, LinesOfThreadsNeverMix) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      const LogPrefix prefix("rank " + std::to_string(i));
      for (int j = 0; j < 100; ++j) log_.write(LogLevel::kInfo, std::string(200, static_cast<char>('a' + i)));
    });
  }
  for (auto& thread : threads) thread.join();
  const auto lines = lines_of(path_);
  ASSERT_EQ(lines.size(), 400u);
  for (const auto& line : lines) {
    const char letter = line.back();
    EXPECT_THAT(line, ::testing::EndsWith(fmt::format("[rank {}] {}", letter - 'a', std::string(200, letter))));
  }
}

TEST(Log, NamesWhatItCannotOpen) { EXPECT_THROW(LogFile("/absent/directory/x.log"), RunError); }

TEST(Log, LinesAreShownOnStderr) {
  Log log;
  ::testing::internal::CaptureStderr();
  log.write(LogLevel::kError, "heard");
  log.progress_line("bar", false);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::HasSubstr("error   heard\nbar\n"));
}

// On a terminal a log line goes above the bar, which stays the last line.
TEST(Log, BarStaysBelowLines) {
  Log log;
  ::testing::internal::CaptureStderr();
  log.progress_line("BAR", true);
  log.write(LogLevel::kInfo, "line");
  log.progress_line("", true);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::MatchesRegex("\r.\\[2KBAR\r.\\[2K[^\n]*line\nBAR\r.\\[2K"));
}

// Lines that a run tells a person stand by themselves too.
TEST(Log, BarStaysBelowWhatIsShown) {
  Log log;
  ::testing::internal::CaptureStderr();
  log.show("before");
  log.progress_line("BAR", true);
  log.show("shown");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "before\n\r\x1b[2KBAR\r\x1b[2Kshown\nBAR");
}

TEST(Progress, Text) {
  EXPECT_EQ(format_duration(12.4), "12 s");
  EXPECT_EQ(format_duration(245), "4:05");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(progress_text({"grpo", 25, 50, 5, 40}, "reward 0.61", 4),
            "grpo  \u2588\u2588\u2591\u2591  25/50  reward 0.61  2 s/it  ETA 50 s");
  EXPECT_EQ(progress_text({"sft", 0, 50, 0, 3}, "", 0), "sft  0/50");
  EXPECT_EQ(progress_text({"sft", 50, 50, 0, 100}, "", 0), "sft  50/50  2 s/it");
}

// The bar gives way, then the end of the details is cut, between characters.
TEST(Progress, ANarrowTerminalShowsTheFirstDetailAndTheTimeLeft) {
  const ProgressState state{"grpo", 9, 12, 0, 90};
  const std::string details = "reward 1.5  loss 0.005991  kl 0.1498  length 12.25  grad 0.8117";
  std::string bar;
  for (int i = 0; i < 20; ++i) bar += i < 15 ? "\u2588" : "\u2591";
  EXPECT_EQ(terminal_progress_text(state, details, 79),
            "grpo  " + bar + "  9/12  reward 1.5  10 s/it  ETA 30 s  loss 0.005991 ");
  EXPECT_EQ(terminal_progress_text(state, details, 40), "grpo  9/12  reward 1.5  10 s/it  ETA 30 ");
  EXPECT_EQ(terminal_progress_text(state, details, 50),
            "grpo  \u2588\u2588\u2588\u2588\u2588\u2591\u2591  9/12  reward 1.5  10 s/it  ETA 30 s");
  EXPECT_EQ(terminal_progress_text(state, details, 8), "grpo  9/");
  EXPECT_EQ(terminal_progress_text(state, details, 200), progress_text(state, details, 20));
}

TEST(Progress, PlainLinesWithoutATerminal) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("sft", 2);
    progress.update(1, "loss 2");
    progress.update(2, "loss 1");
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::MatchesRegex("sft  1/2  loss 2  [^ ]+ s/it  ETA 0 s\nsft  2/2  loss 1  [^ ]+ s/it\n"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Progress, LinesStayAtTheEndsAndEveryFewSteps) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("sft", 10, 0, 4);
    for (int64_t done = 1; done <= 10; ++done) progress.update(done, "");
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, ::testing::MatchesRegex("sft  1/10[^\n]*\nsft  4/10[^\n]*\nsft  8/10[^\n]*\nsft  10/10[^\n]*\n"));
}

}  // namespace
}  // namespace collimate::base
