#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/rlhf/types/loss.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/prompt/letter_tokenizer.h"

namespace collimate::rlhf {
namespace {

// Epochs of seven examples, "a" to "g".
class SourceEpochs : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream out(path_);
    for (char letter = 'a'; letter < 'h'; ++letter)
      out << R"({"label": true, "completion": "x", "chosen": "x", "rejected": "y", "prompt": ")" << letter << "\"}\n";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  RowSource source(SourceOptions options) const {
    const text::Renderer renderer(tokenizer_, text::make_chat_template(tokenizer_, "plain"), {});
    options.seed = 3;
    std::vector<text::DataSource> sources = {{.path = path_}};
    if (options.kind == RowKind::kPreference) sources[0].columns = {{"label", "mark"}, {"completion", "other"}};
    return {text::Dataset::read(sources), renderer, options};
  }
  static std::vector<int32_t> first_tokens(const Batch& rows) {
    std::vector<int32_t> tokens;
    for (int64_t r = 0; r < rows.rows(); ++r) tokens.push_back(rows.row(batch::kIds, r)[0]);
    return tokens;
  }
  // Returns the first tokens of examples [first, first + count) of the endless sequence.
  static std::vector<int32_t> sequence(const RowSource& source, int64_t first, int64_t count) {
    std::vector<int32_t> tokens;
    for (const int64_t example : source.order(first, count)) tokens.push_back(source.rendered(example)[0].ids[0]);
    return tokens;
  }

  const std::string path_ = testing::TempDir() + "/collimate-source-epochs.jsonl";
  const text::CharacterTokenizer tokenizer_ = letter_tokenizer();
};

TEST_F(SourceEpochs, AreCutOrFollowEachOther) {
  struct Case {
    LastBatch last_batch;
    int64_t iterations;                 // of an epoch
    std::vector<int64_t> begins, rows;  // of each iteration: where it begins in the sequence, and its rows
  };
  const std::vector<Case> cases = {{LastBatch::kCycle, 0, {0, 3, 6, 9, 12, 15, 18}, {3, 3, 3, 3, 3, 3, 3}},
                                   {LastBatch::kDrop, 2, {0, 3, 7, 10, 14, 17, 21}, {3, 3, 3, 3, 3, 3, 3}},
                                   {LastBatch::kRetain, 3, {0, 3, 6, 7, 10, 13, 14}, {3, 3, 1, 3, 3, 1, 3}}};
  for (const Case& c : cases) {
    const RowSource prompts = source({.last_batch = c.last_batch});
    EXPECT_EQ(prompts.epoch_iterations(3), c.iterations);
    std::set<int64_t> uids;
    int64_t all = 0;
    for (const int64_t i : {4, 0, 6, 2, 1, 5, 3}) {  // in any order: a run that goes on needs no cursor
      ASSERT_EQ(prompts.rows_of(i, 3), c.rows[static_cast<size_t>(i)]);
      const int64_t rows = prompts.rows_of(i, 3);
      const Batch batch = prompts.rows(i, 3, 0, rows);
      EXPECT_EQ(first_tokens(batch), sequence(prompts, c.begins[static_cast<size_t>(i)], rows)) << i;
      for (const int64_t uid : batch.all(batch::kUid)) uids.insert(uid);
      all += rows;
      const Batch replacement = prompts.rows(i, 3, rows, 1);
      EXPECT_EQ(std::count(uids.begin(), uids.end(), replacement.get(batch::kUid, 0)), 0);
    }
    EXPECT_EQ(static_cast<int64_t>(uids.size()), all);
  }
}

TEST_F(SourceEpochs, TheLastIterationHasWholeGroups) {
  const RowSource pairs = source({.kind = RowKind::kPreference, .last_batch = LastBatch::kRetain});
  EXPECT_EQ(pairs.rows_of(1, 6), 6);
  EXPECT_EQ(pairs.rows_of(2, 6), 2);
  const RowSource prompts = source({.samples_per_prompt = 4, .last_batch = LastBatch::kRetain});
  EXPECT_EQ(prompts.rows_of(2, 12), 4);
  EXPECT_EQ(prompts.rows_of(0, 28), 28) << "an iteration that is an epoch";
  EXPECT_EQ(prompts.rows_of(5, 40), 28) << "more rows than an epoch has";
}

TEST_F(SourceEpochs, AnEpochWithoutAnIterationIsRefused) {
  const RowSource prompts = source({.last_batch = LastBatch::kDrop});
  EXPECT_EQ(base::message_of([&] { prompts.require_iteration(7); }), "");
  const std::string refused =
      "[data.last_batch] expected cycle or retain, or an epoch of at least the 8 examples of an iteration, got drop, "
      "which leaves out all 7 of an epoch; try fewer rows in an iteration";
  EXPECT_EQ(base::message_of([&] { prompts.require_iteration(8); }), refused);
  EXPECT_EQ(base::message_of([&] { prompts.rows(0, 8, 0, 8); }), refused);
}

// The first prompt of a smaller iteration stands before that iteration's own last answer.
TEST_F(SourceEpochs, MismatchedAnswersAreOfTheSameIteration) {
  const RowSource marked = source({.kind = RowKind::kMarked, .last_batch = LastBatch::kRetain, .mismatched = true});
  const Batch last = marked.rows(2, 3, 0, 1);
  EXPECT_THAT(last.row(kMismatchedIds, 0), testing::ElementsAreArray(last.row(batch::kIds, 0)));
}

}  // namespace
}  // namespace collimate::rlhf
