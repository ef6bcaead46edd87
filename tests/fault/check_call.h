#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fault/cli_support.h"

namespace collimate::test {

// `collimate check --all` of the small task's config of a recipe.
class CheckCall : public testing::Test {
 protected:
  void SetUp() override { write_small_task(root_.path()); }

  host::CommandResult check(const std::string& recipe, const std::vector<std::string>& sets = {},
                            const Environment& environment = {}) {
    write_text(root_ / "run.yaml", small_config(recipe, root_.path()));
    std::vector<std::string> words = {"check", root_ / "run.yaml", "--all"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return run_collimate(words, environment);
  }
  // The reasons for which the config is refused, one a line of stderr.
  std::string reasons(const std::string& recipe, const std::vector<std::string>& sets) {
    const host::CommandResult result = check(recipe, sets);
    EXPECT_EQ(result.status.code, 2) << result.errors;
    return result.errors;
  }
  std::string shown(const std::string& recipe, const std::vector<std::string>& sets = {}) {
    const host::CommandResult result = check(recipe, sets);
    EXPECT_TRUE(result.status.ok()) << result.errors;
    return result.output;
  }

  Scratch root_{"check"};
};

}  // namespace collimate::test
