#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "collimate/host/file_io.h"
#include "tests/fault/cli_support.h"
#include "tests/fault/runs.h"

// Runs that began with an earlier program, whose defaults were others.
namespace collimate::test {
namespace {

// An earlier program's default was longer than what this policy reads.
TEST(ResumeDefaults, ARunOfTheEarlierDefaultLengthGoesOn) {
  Runs runs("resume-length", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("run"));
  const std::string resolved = runs.directory("run") + "/config.resolved.yaml";
  const std::string now = host::read_file(resolved);
  const std::string then = std::regex_replace(now, std::regex(" max_tokens: [0-9]+"), " max_tokens: 1024");
  ASSERT_NE(then, now);
  write_text(resolved, then);
  ASSERT_NO_FATAL_FAILURE(runs.finish("run", {"--set", "run.iterations=5"}));
  write_text(resolved, then);
  const host::CommandResult other = runs.train("run", {"--set", "data.max_tokens=20"}, {});
  EXPECT_NE(other.errors.find("of another config (data.max_tokens: 1024 -> 20)"), std::string::npos) << other.errors;
}

}  // namespace
}  // namespace collimate::test
