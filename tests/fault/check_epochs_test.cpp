// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using CheckEpochs = CheckCall;

TEST_F(CheckEpochs, EpochsBecomeIterations) {
  EXPECT_THAT(shown("grpo", {"run.epochs=0.5"}),
              AllOf(HasSubstr("\n  iterations: 9\n"),
                    HasSubstr("\n# run: 9 iterations × 4 examples = 36, 0.5 epochs of 72\n")));
  EXPECT_THAT(shown("sft", {"run.epochs=3", "train.lr_schedule=linear"}),
              HasSubstr("\n# learning rate: 0.001 linear to 0 at update 15\n"));
  EXPECT_THAT(
      reasons("sft", {"run.epochs=3", "run.iterations=4"}),
      HasSubstr("[--set run.iterations] expected one of run.epochs (3, which is 15 iterations) and run.iterations "
                "(4), got both; try leaving one of them out"));
}

TEST_F(CheckEpochs, RowsBeyondTheEpochsAreNamed) {
  const std::vector<std::string> sets = {"train.samples_per_update=16", "data.shuffle=false"};
  EXPECT_THAT(
      shown("sft", {sets[0], sets[1], "run.epochs=1"}),
      HasSubstr(
          "\n# run: 3 iterations × 16 examples = 48, 1.2 epochs of 40\n"
          "# run: run.epochs 1 is 3 iterations; the last one is filled up with 8 examples of data.train, read once "
          "more (row 1, 2, 3, …)\n"));
  EXPECT_THAT(
      shown("sft", {sets[0], sets[1], "run.epochs=0.25"}),
      HasSubstr("\n# run: run.epochs 0.25 is 1 iteration; the last one is filled up with 6 examples of data.train (row "
                "11, 12, 13, …)\n"));
  EXPECT_THAT(shown("sft", {"run.epochs=1"}), testing::Not(HasSubstr("filled up")));
}

TEST_F(CheckEpochs, TheEndOfAnEpochMayBeLeftOutOrStandAlone) {
  const auto sft = [](const char* last_batch, const char* rows) -> std::vector<std::string> {
    return {"run.epochs=2", fmt::format("data.last_batch={}", last_batch),
            fmt::format("train.samples_per_update={}", rows)};
  };
  EXPECT_THAT(shown("sft", sft("drop", "16")),
              AllOf(HasSubstr("\n  iterations: 4\n"),
                    HasSubstr("\n# run: 4 iterations of 16 examples, 2 epochs of 40 in 2 iterations, and 8 of each "
                              "epoch are left out (data.last_batch: drop)\n")));
  EXPECT_THAT(shown("sft", sft("retain", "16")),
              AllOf(HasSubstr("\n  iterations: 6\n"),
                    HasSubstr("\n# run: 6 iterations of 16 examples, 2 epochs of 40 in 3 iterations, of which the last "
                              "has 8 (data.last_batch: retain)\n")));
  EXPECT_THAT(shown("sft", sft("retain", "8")),
              HasSubstr("\n# run: 10 iterations of 8 examples, 2 epochs of 40 in 5 iterations\n"));
  EXPECT_THAT(reasons("sft", sft("drop", "64")),
              HasSubstr("[data.last_batch] expected cycle or retain, or an epoch of at least the 64 examples"));
  const std::vector<std::string> grpo = {"run.epochs=1", "data.last_batch=retain", "rollout.prompts_per_iteration=5",
                                         "train.samples_per_update=6"};
  EXPECT_THAT(shown("grpo", grpo),
              AllOf(HasSubstr("\n# updates: 20 rows ÷ 6 per update = 4 per iteration; 58 in 15 iterations, as the last "
                              "one of an epoch has fewer\n"),
                    HasSubstr("\n# run: 15 iterations of 5 examples, 1 epoch of 72 in 15 iterations, of which the last "
                              "has 2 (data.last_batch: retain)\n")));
  EXPECT_THAT(reasons("grpo", {grpo[0], grpo[1], grpo[2], grpo[3], "algorithm.loss_type=dapo",
                               "algorithm.token_normalizer=iteration"}),
              HasSubstr("[data.last_batch] expected cycle or drop with algorithm.token_normalizer: iteration, got "
                        "retain, with which the last iteration of an epoch has 2 of 4 updates"));
}

}  // namespace
}  // namespace collimate::test
