#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/rlhf/types/loss.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/prompt/letter_tokenizer.h"

namespace collimate::rlhf {
namespace {

class StepRows : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  RowSource source(const std::string& rows, const SourceOptions& options) {
    std::ofstream(path_) << rows;
    const text::Renderer renderer(tokenizer_, text::make_chat_template(tokenizer_, "plain"), {});
    return {text::Dataset::read({{.path = path_}}), renderer, options};
  }

  template <class T>
  static std::vector<T> row_of(const Batch& rows, const Key<T>& key, int64_t r) {
    const auto row = rows.row(key, r);
    return {row.begin(), row.end()};
  }

  const std::string path_ = testing::TempDir() + "/collimate-step-rows.jsonl";
  const text::CharacterTokenizer tokenizer_ = letter_tokenizer();  // <pad>, <eos>, then a to z
  const std::string steps_ = R"({"prompt": "a", "completions": ["bc", "d"], "labels": [true, false]}
{"prompt": "a", "completions": ["", "b"], "labels": [0, 1]})";
  // The separator is two letters here, as the tokenizer has no line end.
  const SourceOptions options_{.kind = RowKind::kSteps, .shuffle = false, .step_separator = "zy"};
};

TEST_F(StepRows, StepsEndWithTheirSeparatorWhereTheirLabelIs) {
  const Batch rows = source(steps_, options_).rows(0, 2, 0, 2);
  EXPECT_EQ(row_of(rows, batch::kIds, 0), (std::vector<int32_t>{2, 3, 4, 27, 26, 5, 27, 26}));
  EXPECT_EQ(row_of(rows, batch::kTrainable, 0), (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(row_of(rows, kStepRight, 0), (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(row_of(rows, batch::kIds, 1), (std::vector<int32_t>{2, 27, 26, 3, 27, 26})) << "a step without text";
  EXPECT_EQ(row_of(rows, kStepRight, 1), (std::vector<float>{0, 0, 0, 0, 0, 1}));
}

TEST_F(StepRows, ARowThatIsCutKeepsTheMarksOfItsSteps) {
  SourceOptions cut = options_;
  cut.max_tokens = 5;
  cut.long_rows = LongRows::kTruncate;
  const Batch rows = source(steps_, cut).rows(0, 2, 0, 2);
  EXPECT_EQ(row_of(rows, kStepRight, 0), (std::vector<float>{0, 0, 0, 0, 1}));
  EXPECT_EQ(row_of(rows, batch::kTrainable, 1), (std::vector<uint8_t>{0, 0, 1, 0, 0}));
}

TEST_F(StepRows, OtherRowsAreNoSteps) {
  const auto refused = [&](const std::string& rows, RowKind kind) {
    return base::message_of([&] { source(rows, {.kind = kind}); });
  };
  EXPECT_THAT(refused(R"({"prompt": "a", "completion": "b"})", RowKind::kSteps),
              testing::HasSubstr(
                  "expected a row with \"completions\", a list of steps, and \"labels\", true or false for each, "
                  "got a prompt with a completion, which recipe: sft reads"));
  EXPECT_THAT(refused(R"({"prompt": "a", "completions": ["b"], "labels": [true]})", RowKind::kPreference),
              testing::HasSubstr("got steps with labels, which recipe: process_reward reads"));
}

}  // namespace
}  // namespace collimate::rlhf
