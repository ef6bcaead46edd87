#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/text/dataset.h"
#include "tests/support/base/error_of.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;

Example steps_of(const std::string& text) {
  Row row = Row::parse(text);
  EXPECT_EQ(recognise_shape(row), DataShape::kSteps);
  return to_example(DataShape::kSteps, std::move(row), {"rows.jsonl", 0, 1});
}

TEST(LabelledSteps, HaveALabelEach) {
  const Example example = steps_of(R"({"prompt": "p", "completions": ["a", "b"], "labels": [true, 0], "source": "s"})");
  EXPECT_EQ(std::get<std::string>(example.prompt), "p");
  ASSERT_EQ(example.steps.size(), 2U);
  EXPECT_EQ(example.steps[0].text, "a");
  EXPECT_TRUE(example.steps[0].right);
  EXPECT_FALSE(example.steps[1].right);
  EXPECT_EQ(example.extra, (nlohmann::json{{"source", "s"}}));
}

TEST(LabelledSteps, AreRefusedWithoutOne) {
  const auto error = [](const std::string& row) { return base::message_of([&] { steps_of(row); }); };
  EXPECT_THAT(error(R"({"prompt": "p", "completions": ["a", "b"], "labels": [true]})"),
              HasSubstr("column labels] expected a label for each of the 2 steps in completions, got 1"));
  EXPECT_THAT(error(R"({"prompt": "p", "completions": ["a"], "labels": ["good"]})"),
              HasSubstr("expected true or false (or 1 or 0) for each step, got \"good\""));
  EXPECT_THAT(error(R"({"prompt": "p", "completions": [], "labels": []})"),
              HasSubstr("expected at least one step, got none"));
}

}  // namespace
}  // namespace collimate::text
