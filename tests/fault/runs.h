#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/fault/cli_support.h"

namespace collimate::test {

constexpr int kIterations = 4;

inline std::string checkpoint_of(const std::string& output, int step) {
  return fmt::format("{}/checkpoints/step-{:06}", output, step);
}

// Runs of one config in directories of their own below a scratch directory.
class Runs {
 public:
  Runs(const std::string& name, const std::string& recipe, const std::string& lines) : scratch_(name) {
    write_small_task(scratch_.path());
    write_text(config(), small_config(recipe, scratch_.path()) + lines);
    edit("iterations: 3", fmt::format("iterations: {}, save_every: 1", kIterations));
  }

  host::CommandResult train(const std::string& output, std::vector<std::string> more, const Environment& environment) {
    std::vector<std::string> words = {"train", config(), "--output", directory(output)};
    words.insert(words.end(), more.begin(), more.end());
    return run_collimate(words, environment);
  }
  void finish(const std::string& output, const std::vector<std::string>& more = {}) {
    const host::CommandResult result = train(output, more, {});
    ASSERT_TRUE(result.status.ok()) << result.status.description() << ": " << result.errors;
  }
  void kill_at(const std::string& place, const std::string& output) {
    const host::CommandResult result = train(output, {}, {{"COLLIMATE_TEST_KILL_AT", place}});
    ASSERT_EQ(result.status.signal, SIGKILL) << place << ": " << result.status.description() << result.errors;
  }
  // Puts `to` in place of `from` in the config.
  void edit(const std::string& from, const std::string& to) { replace_in(config(), from, to); }
  std::string directory(const std::string& output) const { return scratch_ / output; }
  std::string config() const { return scratch_ / "run.yaml"; }
  const Scratch& scratch() const { return scratch_; }

 private:
  Scratch scratch_;
};

}  // namespace collimate::test
