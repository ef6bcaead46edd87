#include "collimate/rlhf/types/loss.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace collimate::rlhf {
namespace {

// Quantities on another device than the host, whose numbers nobody can read.
TEST(LossContext, WhatItMakesOfTheBatchLiesWhereTheQuantitiesDo) {
  Batch rows;
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 1, 1}});
  rows.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0, -2, -2}, {0, -2.5F, -2}});
  rows.set(kMargin, std::vector<float>{2, 5});
  const at::Tensor elsewhere = at::tensor({1.F, 2.F, 3.F, 4.F}).to(at::kMeta);
  const LossContext context(rows, {.values = elsewhere}, {4, 2});
  for (const at::Tensor& made :
       {context.per_token(batch::kReferenceLogProbs), context.per_row(kMargin), context.row_tokens()})
    EXPECT_EQ(made.device(), at::kMeta) << made.sizes();
  EXPECT_EQ(context.token_counts(), (std::vector<int64_t>{2, 2}));
}

}  // namespace
}  // namespace collimate::rlhf
