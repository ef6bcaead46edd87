#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/deadline.h"
#include "tests/e2e/run_support.h"
#include "tests/support/host/run_command.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The loss of examples/python_loss.py beside the same one in C++, which examples/own_parts registers. PyTorch is a
// stand-in (tests/e2e/stand_in/torch.py) that knows the operations of this loss.
class PythonLoss : public OnSmallTask {
 protected:
  PythonLoss() : OnSmallTask("python-loss") {
    write_text(scratch_ / "run.yaml", small_config("grpo", scratch_.path()));
  }

  host::CommandResult train(const std::string& output, const std::string& loss, const std::vector<std::string>& more,
                            const std::string& torch = COLLIMATE_SOURCE_DIR "/tests/e2e/stand_in") {
    std::vector<std::string> words = {
        COLLIMATE_BIN_DIR "/own_parts", "train", scratch_ / "run.yaml", "--output", scratch_ / output, "--set",
        "algorithm.loss_type=" + loss};
    words.insert(words.end(), more.begin(), more.end());
    return host::run_command({.command = std::move(words), .environment = {{"PYTHONPATH", torch}}}, "",
                             base::Deadline::after(120));
  }
  // A plugin with a loss `mine`, of which `body` are the lines.
  std::string plugin(const std::string& body) {
    write_text(scratch_ / "mine.py",
               "import collimate\n\n@collimate.loss(columns=[\"advantages\"])\ndef mine(c):\n" + body);
    return scratch_ / "mine.py";
  }
};

const std::string kExample = COLLIMATE_SOURCE_DIR "/examples/python_loss.py";

TEST_F(PythonLoss, TrainsToTheBitsOfTheSameLossInCpp) {
  const host::CommandResult cpp = train("cpp", "reinforce", {});
  ASSERT_TRUE(cpp.status.ok()) << cpp.errors;
  const host::CommandResult python = train("python", "reinforce_in_python", {"--plugin", kExample});
  ASSERT_TRUE(python.status.ok()) << python.errors;
  EXPECT_EQ(model_bytes(scratch_ / "python"), model_bytes(scratch_ / "cpp"));
  for (const char* name : {"actor/loss", "reinforce/log_prob"})
    EXPECT_NEAR(metrics_of(scratch_ / "python").back().at(name).get<double>(),
                metrics_of(scratch_ / "cpp").back().at(name).get<double>(), 1e-5)
        << name;
  const host::CommandResult apart =
      train("apart", "reinforce_in_python", {"--plugin", kExample, "--set", "cluster=local-processes"});
  ASSERT_TRUE(apart.status.ok()) << apart.errors;
  EXPECT_EQ(model_bytes(scratch_ / "apart"), model_bytes(scratch_ / "cpp"));
}

TEST_F(PythonLoss, WhatItRaisesEndsTheRunWithItsLines) {
  const host::CommandResult raised =
      train("raised", "mine", {"--plugin", plugin("    scale = c.global_tokens\n    return c.entropy / scale\n")});
  EXPECT_EQ(raised.status.code, 1);
  EXPECT_THAT(raised.errors, AllOf(HasSubstr("AttributeError: the loss has no entropy; its needs are log_probs"),
                                   HasSubstr("line 6, in mine"), HasSubstr("return c.entropy / scale")));
}

// JSON has no word for such numbers; the guards that a loss in C++ has are of this one too.
TEST_F(PythonLoss, OneThatIsNoNumberEndsAsInCpp) {
  const std::string infinite =
      "    c.metric(\"mine/infinite\", float(\"inf\"), 1)\n    c.metric(\"mine/none\", float(\"nan\"), 1)\n";
  const std::string whole = "    return (c.column(\"advantages\") * c.log_probs).sum() / ";
  const host::CommandResult metrics =
      train("metrics", "mine", {"--plugin", plugin(infinite + whole + "-c.global_tokens\n")});
  ASSERT_TRUE(metrics.status.ok()) << metrics.errors;
  EXPECT_THAT(metrics_of(scratch_ / "metrics").back().at("nonfinite").dump(),
              AllOf(HasSubstr("mine/infinite=inf"), HasSubstr("mine/none=nan")));
  const host::CommandResult none = train("none", "mine", {"--plugin", plugin(whole + "float(\"nan\")\n")});
  EXPECT_EQ(none.status.code, base::GuardError("").exit_code()) << none.errors;
}

TEST_F(PythonLoss, NeedsPyTorch) {
  fs::create_directories(scratch_ / "without");
  write_text(scratch_ / "without/torch.py", "raise ImportError('No module named torch')\n");
  const host::CommandResult missing =
      train("missing", "reinforce_in_python", {"--plugin", kExample}, scratch_ / "without");
  EXPECT_EQ(missing.status.code, 2);
  EXPECT_THAT(missing.errors, AllOf(HasSubstr("[collimate.loss] expected PyTorch in"),
                                    HasSubstr("try COLLIMATE_PYTHON=PROGRAM, a Python that has it")));
}

TEST_F(PythonLoss, NamesAreCheckedBeforeARun) {
  write_text(scratch_ / "twice.py", "import collimate\n\n@collimate.loss(name=\"grpo\")\ndef mine(c):\n    return 0\n");
  EXPECT_THAT(train("twice", "grpo", {"--plugin", scratch_ / "twice.py"}).errors,
              HasSubstr("[register_losses] expected a name that is free, got \"grpo\" again"));
  write_text(scratch_ / "betta.py",
             "import collimate\n\n@collimate.loss(options=[\"betta\"])\ndef mine(c):\n    return 0\n");
  EXPECT_THAT(train("betta", "mine", {"--plugin", scratch_ / "betta.py"}).errors,
              AllOf(HasSubstr("[collimate.loss] expected options of algorithm, one of "),
                    HasSubstr("got 'betta'; try 'beta'")));
  write_text(scratch_ / "needs.py",
             "import collimate\n\n@collimate.loss(needs=[\"entropie\"])\ndef mine(c):\n    return 0\n");
  EXPECT_THAT(
      train("needs", "mine", {"--plugin", scratch_ / "needs.py"}).errors,
      HasSubstr("needs of quantities, one of log_probs, entropy, values, row_scores, token_scores, log_collision, "
                "got 'entropie'; try 'entropy'"));
}

}  // namespace
}  // namespace collimate::test
