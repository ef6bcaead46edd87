// A teacher's lists of rows' tokens, and another model's log-probs of these.
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/batch/standard_keys.h"
#include "collimate/batch/teacher_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/train/scoring.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::train {
namespace {

Batch answered_rows(int64_t count, int64_t vocabulary) {
  batch::TokenRows rows;
  for (int64_t r = 0; r < count; ++r) {
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < 4 + r * 5 % 7; ++t) ids.push_back(static_cast<int32_t>((r * 31 + t * 17) % vocabulary));
    rows.add(50 + r, ids, static_cast<size_t>(1 + r % 3));
  }
  return rows.batch();
}

class TeacherLists : public ::testing::Test {
 protected:
  shape::ModelShape shape_ = model::testing::tiny_shape("qwen2");
  model::Model model_{model::testing::tiny_weights(shape_), {}};
  Batch rows_ = answered_rows(6, shape_.vocabulary);
  const ListedKeys own_{{.name = "own_log_probs", .ragged = true}, {.name = "own_rest", .ragged = true}};
};

TEST_F(TeacherLists, AreTheDistributionsOfTheTrainableTokens) {
  const Batch listed = with_teacher_lists(model_, rows_, 5, {.temperature = 0.9F});
  const Batch drawn = with_log_probs(model_, rows_, batch::kLogProbs, {.temperature = 0.9F});
  int64_t found = 0;
  for (int64_t r = 0; r < rows_.rows(); ++r) {
    const auto ids = listed.row(batch::kTeacherIds, r);
    const auto log_probs = listed.row(batch::kTeacherLogProbs, r), rest = listed.row(batch::kTeacherRest, r);
    ASSERT_EQ(ids.size(), 5 * rest.size());
    size_t at = 0;
    for (int64_t t = 0; t < rows_.length(batch::kIds.name, r); ++t) {
      if (rows_.row(batch::kTrainable, r)[t] == 0) continue;
      double sum = std::exp(rest[at]);
      for (size_t k = 5 * at; k < 5 * at + 5; ++k) {
        sum += std::exp(log_probs[k]);
        if (ids[k] != rows_.row(batch::kIds, r)[t]) continue;
        EXPECT_EQ(log_probs[k], drawn.row(batch::kLogProbs, r)[t]) << "the bits of the token's own log-prob";
        ++found;
      }
      EXPECT_NEAR(sum, 1, 1e-6);
      ++at;
    }
    EXPECT_EQ(at, rest.size());
  }
  EXPECT_GT(found, 0);
}

TEST_F(TeacherLists, DoNotDependOnMicroBatches) {
  const Batch whole = with_teacher_lists(model_, rows_, 3, {}),
              rowwise = with_teacher_lists(model_, rows_, 3, {.micro_batch_tokens = 1});
  EXPECT_EQ(whole.all(batch::kTeacherIds), rowwise.all(batch::kTeacherIds));
  EXPECT_EQ(whole.all(batch::kTeacherLogProbs), rowwise.all(batch::kTeacherLogProbs));
  EXPECT_EQ(whole.all(batch::kTeacherRest), rowwise.all(batch::kTeacherRest));
}

TEST_F(TeacherLists, AModelIsOfOneMindWithItself) {
  for (const int64_t count : {3, 100000}) {
    const Batch listed = with_teacher_lists(model_, rows_, count, {});
    const Batch again = with_listed(model_, listed, own_, {.micro_batch_tokens = 9});
    EXPECT_EQ(listed.all(batch::kTeacherLogProbs), again.all(own_.log_probs));
    EXPECT_EQ(listed.all(batch::kTeacherRest), again.all(own_.rest));
    EXPECT_EQ(listed.column(batch::kTeacherIds.name).schema.inner.at(0), std::min(count, shape_.vocabulary));
  }
}

}  // namespace
}  // namespace collimate::train
