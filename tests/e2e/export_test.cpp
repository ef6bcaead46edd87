#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "collimate/model/weights.h"
#include "tests/e2e/run_support.h"

// The type of numbers of the model that a run leaves.
namespace collimate::test {
namespace {

class Export : public testing::Test {
 protected:
  void SetUp() override {
    write_small_task(scratch_.path());
    train("whole", {});
  }
  void train(const std::string& name, const std::vector<std::string>& sets) {
    train_text(small_config("grpo", scratch_.path()), scratch_ / name, sets);
  }
  std::shared_ptr<model::Weights> model_of(const std::string& name) {
    return model::load_huggingface(scratch_ / (name + "/model"), "", {}, {});
  }
  // Values of bf16, which lacks sixteen bits, within half of the distance between its numbers.
  void expect_rounded(const std::string& name, const std::string& from) {
    const auto rounded = model_of(name), whole = model_of(from);
    for (int i = 0; i < static_cast<int>(whole->own_params()); ++i) {
      const auto is = rounded->values(i), was = whole->values(i);
      for (size_t at = 0; at < was.size(); ++at) {
        ASSERT_EQ(std::bit_cast<uint32_t>(is[at]) & 0xFFFFU, 0U);
        ASSERT_LE(std::abs(is[at] - was[at]), std::ldexp(std::abs(was[at]), -8)) << is[at] << " of " << was[at];
      }
    }
  }

  Scratch scratch_{"export"};
};

// The run trains the same, and goes on from its checkpoints, which do not round.
TEST_F(Export, OfBfloat16RoundsTheModelAlone) {
  const std::vector<std::string> sets = {"train.export_dtype=bfloat16"};
  train_until_stopped(small_config("grpo", scratch_.path()), scratch_ / "rounded", sets);
  train("rounded", sets);
  expect_rounded("rounded", "whole");
  EXPECT_LT(model_bytes(scratch_ / "rounded").size(),
            0.6 * static_cast<double>(model_bytes(scratch_ / "whole").size()));
  EXPECT_EQ(metrics_of(scratch_ / "rounded").back().at("actor/loss"),
            metrics_of(scratch_ / "whole").back().at("actor/loss"));
}

// The last checkpoint has what the model is made of.
TEST_F(Export, OfARunThatHasEndedIsMadeAnew) {
  train("changed", {});
  const std::string was = model_bytes(scratch_ / "changed");
  const nlohmann::json last = metrics_of(scratch_ / "changed").back();
  train("changed", {"train.export_dtype=bfloat16"});
  expect_rounded("changed", "whole");
  EXPECT_EQ(metrics_of(scratch_ / "changed").back(), last);
  train("changed", {});
  EXPECT_EQ(model_bytes(scratch_ / "changed"), was);
}

// A model that begins from random weights has no type of its own.
TEST_F(Export, ByItselfIsOfTheTypeThatTheRunBeganFrom) {
  train("random", {"train.export_dtype=auto"});
  EXPECT_EQ(model_bytes(scratch_ / "random"), model_bytes(scratch_ / "whole"));
  train("rounded", {"train.export_dtype=bfloat16"});
  const auto from = [&](const std::string& start, const std::string& dtype) {
    const std::string name = start + "-" + dtype;
    train(name, {"models.policy.from_scratch=false", "models.policy.path=" + (scratch_ / (start + "/model")),
                 "train.export_dtype=" + dtype});
    return model_bytes(scratch_ / name).size();
  };
  EXPECT_EQ(from("rounded", "auto"), model_bytes(scratch_ / "rounded").size());
  EXPECT_EQ(from("rounded", "float32"), model_bytes(scratch_ / "whole").size());
  EXPECT_EQ(from("whole", "auto"), model_bytes(scratch_ / "whole").size());
}

}  // namespace
}  // namespace collimate::test
