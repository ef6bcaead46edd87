#include "collimate/model/low_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "collimate/base/at.h"

namespace collimate::model {
namespace {

constexpr int64_t kExperts = 3, kRank = 2, kColumns = 5, kHeight = 2;
const FusedParameter kParameter{"gate_up_proj", kExperts, 2 * kHeight, kColumns, {"gate_proj", "up_proj"}};

// A tensor [rows, columns] of numbers that differ.
class Numbers {
 public:
  Numbers(int64_t rows, int64_t columns, float seed) : values_(static_cast<size_t>(rows * columns)) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = std::sin(static_cast<float>(i) * 0.7F + seed);
    entry_ = {.name = "numbers", .dtype = "F32", .sizes = {rows, columns}, .data = std::as_bytes(std::span(values_))};
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  const TensorEntry& entry() const { return entry_; }
  float at(int64_t row, int64_t column) const { return base::at(values_, row * entry_.sizes[1] + column); }

 private:
  std::vector<float> values_;
  TensorEntry entry_;
};

std::vector<float> row_of(const MatrixInTensor& matrix, size_t row) {
  std::vector<float> out(static_cast<size_t>(matrix.sizes[1]));
  matrix.read_row(row, "here", out);
  return out;
}

// b a without the scale, at (row, column) of the expert's matrix.
float product(const LowRank& adapter, int64_t row, int64_t column) {
  float sum = 0;
  const std::vector<float> b = row_of(adapter.b, static_cast<size_t>(row));
  for (size_t k = 0; k < b.size(); ++k) sum += b[k] * base::at(row_of(adapter.a, k), column);
  return sum;
}

// PEFT's ParamWrapper: A as [E, r, in], B as [out, r, E]; einsum "o r e, e r i -> e o i", or in earlier versions "e i
// o".
TEST(LowRank, OfAnExpertIsItsPartOfBothTensors) {
  for (const FusedOrder order : {FusedOrder::kRowsAreOut, FusedOrder::kRowsAreIn}) {
    const bool rows_are_out = order == FusedOrder::kRowsAreOut;
    const int64_t in = rows_are_out ? kColumns : 2 * kHeight, out = rows_are_out ? 2 * kHeight : kColumns;
    const Numbers a(kExperts * kRank, in, 0.1F), b(out, kRank * kExperts, 0.2F);
    EXPECT_TRUE(fits(kParameter, order, a.entry(), b.entry()));
    EXPECT_FALSE(
        fits(kParameter, rows_are_out ? FusedOrder::kRowsAreIn : FusedOrder::kRowsAreOut, a.entry(), b.entry()));
    const LowRank fused{MatrixInTensor::all_of(a.entry()), MatrixInTensor::all_of(b.entry()), 0.5F};
    for (int64_t e = 0; e < kExperts; ++e)
      for (int64_t row = 0; row < 2 * kHeight; ++row)
        for (int64_t column = 0; column < kColumns; ++column) {
          const int64_t o = rows_are_out ? row : column, i = rows_are_out ? column : row;
          float wanted = 0;
          for (int64_t r = 0; r < kRank; ++r) wanted += b.at(o, r * kExperts + e) * a.at(e * kRank + r, i);
          const LowRank one = of_expert(kParameter, order, fused, e, static_cast<size_t>(row / kHeight));
          EXPECT_EQ(one.a.sizes, (std::vector<int64_t>{kRank, kColumns}));
          EXPECT_EQ(one.b.sizes, (std::vector<int64_t>{kHeight, kRank}));
          EXPECT_EQ(one.scale, 0.5F);
          EXPECT_EQ(one.rank, kRank);
          EXPECT_NEAR(product(one, row % kHeight, column), wanted, 1e-6) << e << " " << row << " " << column;
        }
  }
}

TEST(LowRank, OtherSizesFitNoFusedParameter) {
  const Numbers a(kExperts * kRank, kColumns, 0), b(2 * kHeight, kRank * kExperts, 0), short_b(2 * kHeight, 5, 0);
  const Numbers uneven_a(kExperts * kRank + 1, kColumns, 0), uneven_b(2 * kHeight, kRank * kExperts + 1, 0);
  EXPECT_TRUE(fits(kParameter, FusedOrder::kRowsAreOut, a.entry(), b.entry()));
  EXPECT_FALSE(fits(kParameter, FusedOrder::kRowsAreOut, a.entry(), short_b.entry()));
  EXPECT_FALSE(fits(kParameter, FusedOrder::kRowsAreOut, b.entry(), a.entry()));
  EXPECT_FALSE(fits(kParameter, FusedOrder::kRowsAreOut, uneven_a.entry(), uneven_b.entry()));
}

}  // namespace
}  // namespace collimate::model
