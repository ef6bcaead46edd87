#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collimate/batch/trainable.h"
#include "collimate/train/scoring.h"
#include "tests/support/train/shared_ranks.h"

// A pipeline may be cut in any way, with one stage on a rank or several.
namespace collimate::train {
namespace {

using testing::SharedLayout;

std::string cut_name(const SharedLayout& layout) {
  std::string name = fmt::format("{} runs {} layers", layout.name(), layout.runs);
  for (const int64_t layers : layout.layers) name += fmt::format(" {}", layers);
  return name;
}

std::vector<float> log_probs_of(const shape::ModelShape& shape, const model::ModelRanks& ranks) {
  static const Key<float> kNow{.name = "log_probs_now", .ragged = true};
  model::Model model(testing::tiny_weights(shape, {.trained = true, .ranks = ranks}), {});
  const ScoringOptions options{.micro_batch_tokens = 30};
  return batch::at_trainable(with_log_probs(model, testing::shared_samples(), kNow, options), kNow);
}

// Every rank is told the log-probs, whose micro-batches pass the stages one behind the other.
TEST(PipelineCuts, ScoresHaveTheBitsOfOneRank) {
  for (const bool tied : {false, true}) {
    const shape::ModelShape shape = testing::wide_shape(64, 8, tied);
    const std::vector<float> expected = log_probs_of(shape, {});
    ASSERT_GT(expected.size(), 20U);
    for (const SharedLayout& layout : {SharedLayout{.pp = 2, .layers = {1, 7}},
                                       {.pp = 3, .layers = {2, 5, 1}},
                                       {.pp = 2, .runs = 2},
                                       {.pp = 3, .runs = 2},
                                       {.pp = 4, .runs = 2},
                                       {.pp = 2, .runs = 4},
                                       {.pp = 2, .layers = {3, 1, 1, 3}, .runs = 2}})
      testing::on_lines(layout, cut_name(layout), [&](const testing::AxisLines& lines) {
        EXPECT_EQ(log_probs_of(shape, lines.model), expected) << cut_name(layout);
      });
  }
}

// Whole runs of ten updates, of a dense model and of a mixture whose routers have losses of their own.
TEST(PipelineCuts, UpdatesAreThoseOfOneRank) {
  for (const bool mixture : {false, true}) {
    shape::ModelShape shape = testing::wide_shape(64, 6, /*tied=*/false);
    if (mixture) {
      const shape::Block block = testing::tiny_shape("mixtral").blocks.front();
      shape = testing::tiny_shape("mixtral");
      shape.blocks.assign(6, block);
    }
    const testing::SharedRun one = testing::trained_run(shape, {}, nullptr);
    for (const SharedLayout& layout : {SharedLayout{.pp = 2, .layers = {1, 5}},
                                       {.pp = 2, .runs = 2},
                                       {.pp = 3, .runs = 2},
                                       {.dp = 2, .zero = 1, .pp = 2, .runs = 3},
                                       {.pp = 2, .layers = {2, 1, 1, 2}, .runs = 2}})
      testing::on_lines_by_rank(layout, cut_name(layout), [&](int rank, const testing::AxisLines& lines) {
        const testing::SharedRun run = testing::trained_run(shape, layout, &lines);
        if (rank == 0) testing::expect_same_run(run, one, layout, cut_name(layout));
      });
  }
}

}  // namespace
}  // namespace collimate::train
