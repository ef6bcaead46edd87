#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/prompt/source.h"
#include "tests/support/rlhf/prompt/letter_tokenizer.h"

namespace collimate::rlhf {
namespace {

// Two files of prompts and pairs: "a" and "b" once an epoch, "c" as often as its weight says.
class WeightedSource : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(once_) << R"({"prompt": "a", "chosen": "x", "rejected": "y"})"
                         << "\n"
                         << R"({"prompt": "b", "chosen": "x", "rejected": "y"})";
    std::ofstream(weighted_) << R"({"prompt": "c", "chosen": "x", "rejected": "y"})";
  }
  void TearDown() override {
    for (const std::string& path : {once_, weighted_}) std::filesystem::remove(path);
  }

  RowSource source(double weight, const SourceOptions& options) const {
    const text::Renderer renderer(tokenizer_, text::make_chat_template(tokenizer_, "plain"), {});
    return RowSource(text::Dataset::read({{.path = once_}, {.path = weighted_, .weight = weight}}), renderer, options);
  }

  const std::string once_ = testing::TempDir() + "/collimate-weights-once.jsonl";
  const std::string weighted_ = testing::TempDir() + "/collimate-weights-more.jsonl";
  const text::CharacterTokenizer tokenizer_ = letter_tokenizer();
};

TEST_F(WeightedSource, EachUseOfARowHasUidsOfItsOwn) {
  const RowSource prompts = source(2.0, {.kind = RowKind::kPrompt, .samples_per_prompt = 3});
  EXPECT_EQ(prompts.examples(), 3);
  EXPECT_EQ(prompts.epoch_examples(), 4);
  const Batch rows = prompts.rows(0, 12, 0, 12);  // an epoch
  const auto uids = rows.all(batch::kUid), groups = rows.all(batch::kPromptUid);
  EXPECT_EQ(std::set<int64_t>(uids.begin(), uids.end()).size(), 12U);
  std::map<int32_t, std::set<int64_t>> groups_of;  // by the prompt's letter
  for (int64_t i = 0; i < rows.rows(); ++i) groups_of[rows.row(batch::kIds, i)[0]].insert(groups[i]);
  ASSERT_EQ(groups_of.size(), 3U);
  for (const auto& [letter, of_letter] : groups_of)
    EXPECT_EQ(of_letter.size(), letter == *tokenizer_.id_of("c") ? 2U : 1U) << letter;
  const auto later = prompts.rows(1, 12, 0, 12).all(batch::kUid);
  for (const int64_t uid : later) EXPECT_EQ(std::count(uids.begin(), uids.end(), uid), 0);
}

TEST_F(WeightedSource, EachUseOfAPairIsAPairOfItsOwn) {
  const Batch rows = source(3.0, {.kind = RowKind::kPreference}).rows(0, 10, 0, 10);
  std::map<int64_t, int> rows_of;
  for (const int64_t pair : rows.all(batch::kPairUid)) ++rows_of[pair];
  ASSERT_EQ(rows_of.size(), 5U);
  for (const auto& [pair, count] : rows_of) EXPECT_EQ(count, 2);
}

// Recorded runs are of these uids.
TEST_F(WeightedSource, UidsOfAFirstUseAreOfItsRowAndEpoch) {
  for (const double weight : {1.0, 2.0}) {
    const RowSource prompts = source(weight, {.kind = RowKind::kPrompt, .shuffle = false});
    const int64_t examples = prompts.epoch_examples();
    for (const int64_t epoch : {0, 1}) {
      const Batch rows = prompts.rows(epoch, examples, 0, examples);
      for (const int64_t row : {0, 1, 2}) {
        EXPECT_EQ(rows.get(batch::kUid, row), batch::make_uid("sample", "train", row, epoch, 0, 0)) << weight;
        EXPECT_EQ(rows.get(batch::kPromptUid, row), batch::make_uid("prompt", "train", row, epoch, 0, 0)) << weight;
      }
    }
  }
}

}  // namespace
}  // namespace collimate::rlhf
