// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Options that nothing in the run reads or can follow: `check` refuses them, or says so.
class CheckOptions : public CheckCall {};

// val/loss, which patience watches, is sft's alone.
TEST_F(CheckOptions, RefusesPatienceWithoutALossToWatch) {
  const std::vector<std::string> sets = {"run.patience=2", "run.evaluate_every=1", "run.iterations=20"};
  for (const auto& [recipe, file] : std::vector<std::pair<std::string, std::string>>{
           {"grpo", "held_out.jsonl"}, {"dpo", "pairs.jsonl"}, {"sft", "demonstrations.jsonl"}}) {
    std::vector<std::string> all = sets;
    all.push_back("data.eval=" + (root_ / file));
    if (recipe == "sft") {
      EXPECT_THAT(shown(recipe, all), Not(HasSubstr("warning: run.")));
    } else {
      EXPECT_THAT(reasons(recipe, all), HasSubstr("[run.patience] expected an option that recipe " + recipe +
                                                  " reads, whose evaluation has no val/loss, got 2; try leaving it "
                                                  "out, or recipe: sft\n"));
    }
  }
}

TEST_F(CheckOptions, RefusesFewerDevicesThanThePlacements) {
  const std::string placement =
      "placement={version: 1, devices: {count: 3, kind: cpu}, groups: {all: {devices: [0, 1, 2], models: [policy]}}}";
  EXPECT_THAT(
      reasons("sft", {placement, "devices=2"}),
      HasSubstr(
          "[devices] expected at least the 3 of the placement, got 2; try leaving it out, or another placement\n"));
  write_text(root_ / "placement.yaml",
             "version: 1\ndevices: {count: 3, kind: cpu}\n"
             "groups: {all: {devices: [0, 1, 2], models: [policy]}}\n");
  EXPECT_THAT(reasons("sft", {"placement=" + (root_ / "placement.yaml"), "devices=2"}), HasSubstr("[devices]"));
  // A plan may leave devices unused, and a resolved config writes the default out.
  for (const std::string devices : {"devices=3", "devices=4", "devices=1"})
    EXPECT_THAT(shown("sft", {placement, devices}), HasSubstr("\n# placement: 3 devices"));
  EXPECT_THAT(shown("sft", {"devices=4"}), HasSubstr("\n# placement: 4 devices"));
}

// A warning, as `data.eval=null` is how evaluations are switched off.
TEST_F(CheckOptions, SaysWhatIsIdleWithoutEvaluations) {
  const std::vector<std::string> sets = {"run.evaluate_every=2", "run.patience=1", "evaluation.temperature=0.5",
                                         "evaluation.examples=3"};
  const std::string text = shown("grpo", sets);
  for (const std::string key : {"run.evaluate_every", "run.patience", "evaluation.temperature", "evaluation.examples"})
    EXPECT_THAT(text, HasSubstr("\n# warning: [" + key +
                                "] expected data.eval, as it is about evaluations, got none: it does nothing; try "
                                "data.eval: FILE, data.val_size, or leaving it out\n"));
  const host::CommandResult trained = run_collimate(
      {"train", root_ / "run.yaml", "--set", sets[0], "--set", "run.iterations=1", "--output", root_ / "output"});
  EXPECT_TRUE(trained.status.ok()) << trained.errors;
  EXPECT_THAT(trained.errors, HasSubstr("warning: [run.evaluate_every] expected data.eval"));
  const std::string enough = "run.iterations=20";  // fewer updates bring a warning of their own
  EXPECT_THAT(shown("grpo", {enough}), Not(HasSubstr("warning")));
  EXPECT_THAT(shown("grpo", {enough, sets[0], sets[2], sets[3], "data.eval=" + (root_ / "held_out.jsonl")}),
              Not(HasSubstr("warning")));
}

TEST_F(CheckOptions, RefusesSamplingOfAMeasureThatTheTokenizerCannotFollow) {
  const std::string said =
      reasons("grpo", {"data.eval=" + (root_ / "held_out.jsonl"), "evaluation.logit_bias={98: 1}",
                       "evaluation.measure=[{measure: completions, name: usual}, {measure: completions, name: own, "
                       "logit_bias: {99: 1}, regex: '(?=1)1'}]"});
  EXPECT_THAT(said, HasSubstr("[evaluation.logit_bias] expected token ids below the tokenizer's 13, got 98\n"));
  EXPECT_THAT(said, Not(HasSubstr("[evaluation.measure.0")));
  EXPECT_THAT(said,
              HasSubstr("[evaluation.measure.1.logit_bias] expected token ids below the tokenizer's 13, got 99\n"));
  EXPECT_THAT(said, HasSubstr("[evaluation.measure.1, regex] expected a regular expression"));
}

// Nothing is downloaded: a hub's model that is not at hand is named with the command that gets it.
TEST_F(CheckOptions, AModelOfAHub) {
  for (const std::string name : {"org/none", "none"}) {
    const std::string said = reasons("sft", {"models.policy.path=" + name});
    EXPECT_THAT(said, HasSubstr("[models.policy.path] expected a model directory, got " + name +
                                ", which is not there; nothing is downloaded without being asked; try --download (it "
                                "needs PyPI's huggingface_hub), or hf download " +
                                name));
    EXPECT_THAT(said, Not(HasSubstr("config.json")));
  }
}

}  // namespace
}  // namespace collimate::test
