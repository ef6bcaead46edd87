#include "collimate/train/learner.h"

#include <ATen/TensorOperators.h>

#include "collimate/batch/token_rows.h"
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

}  // namespace
}  // namespace collimate::train
