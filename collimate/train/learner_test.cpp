#include "collimate/train/learner.h"

#include <ATen/TensorOperators.h>

#include <filesystem>

#include "collimate/batch/token_rows.h"
#include "collimate/model/memory_plan.h"
#include "collimate/tensor/ops/optimizer.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/tensor/watched_device.h"

namespace collimate::train {
namespace {

int64_t squares_asked = 0;  // arrays of gradients

void counted_squares(const tensor::Exec& exec, const float* x, int64_t count, double* sums) {
  ++squares_asked;
  tensor::default_device().operations().squares_of_chunks(exec, x, count, sums);
}

class CountingDevice final : public test::WatchedDevice {
 public:
  CountingDevice() : operations_(tensor::default_device().operations()) {
    operations_.squares_of_chunks = counted_squares;
  }
  const tensor::Operations& operations() const override { return operations_; }

 private:
  tensor::Operations operations_;
};

TEST(Learner, AnUpdateAsksOnceForTheGradientsNorm) {
  const CountingDevice device;
  const tensor::Exec exec{nullptr, &device};
  const auto weights = model::testing::tiny_weights(model::testing::tiny_shape("llama"));
  model::Model decoder(weights, {});
  Learner learner(decoder, {.schedule = {.peak = 1e-2}, .micro_batch_tokens = 24}, exec);
  batch::TokenRows tokens;
  tokens.add(0, {1, 2, 3}, 1);
  tokens.add(1, {4, 5, 6}, 1);
  const Batch rows = tokens.batch();
  const auto loss = [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                       const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; };
  for (int64_t update = 1; update <= 2; ++update) {
    EXPECT_GT(learner.update(rows, {{}, loss}).grad_norm, 0);
    EXPECT_EQ(squares_asked, update * weights->segments());
  }
}

// Two updates with the optimizer's moments on the device, or away; what they take at most goes to `peak`.
std::vector<float> updated(const std::shared_ptr<tensor::AwayFile>& away, int64_t& peak) {
  constexpr int kWorker = 72;
  const tensor::MemoryScope scope(kWorker, "tensors");
  const auto weights = model::testing::tiny_weights(model::testing::tiny_shape("llama"), {.trained = true});
  model::Model decoder(weights, {});
  tensor::reset_memory_peaks(kWorker);
  LearnerOptions options{.schedule = {.peak = 1e-2}, .micro_batch_tokens = 24};
  options.away = away;
  Learner learner(decoder, options, {});
  batch::TokenRows tokens;
  tokens.add(0, {1, 2, 3}, 1);
  tokens.add(1, {4, 5, 6}, 1);
  const auto loss = [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                       const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; };
  for (int64_t update = 0; update < 2; ++update) learner.update(tokens.batch(), {{}, loss});
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == kWorker && use.purpose == "model/optimizer") {
      peak = use.peak_bytes;
      EXPECT_EQ(use.bytes == 0, away != nullptr);
    }
  std::vector<float> values;
  for (int s = 0; s < weights->segments(); ++s) {
    const auto segment = weights->master(s);
    values.insert(values.end(), segment.span().begin(), segment.span().end());
  }
  const model::Sharing sharing{.away = away != nullptr};
  for (const tensor::MemoryItem& item : model::weights_memory(weights->whole_shape(), weights->options(), sharing))
    if (item.purpose == "optimizer") {
      EXPECT_EQ(peak, item.bytes);
    }
  return values;
}

TEST(Learner, MomentsThatAreAwayTakeOneSegmentsMemoryAndChangeNoBit) {
  int64_t there = 0, away = 0;
  const auto file = std::make_shared<tensor::AwayFile>(std::filesystem::temp_directory_path());
  EXPECT_EQ(updated(nullptr, there), updated(file, away));
  EXPECT_LT(away, there);
}

}  // namespace
}  // namespace collimate::train
