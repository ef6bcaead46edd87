#include "collimate/tensor/ops/columns.h"

#include <cmath>

#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kDottedRows = 5, kDottedStride = 150;

TEST(Columns, AreScaled) {
  for (const int64_t width : {1, 16, 133}) {
    const Floats x = noise(kDottedRows * kDottedStride, 1), factors = noise(width, 2);
    const Floats y = same_everywhere([&](const Exec& exec) {
      Floats out = constant(kDottedRows * kDottedStride, 7.0F);
      scale_columns(exec, factors.data(), x.data(), kDottedRows, width, kDottedStride, out.data());
      return out;
    });
    const Floats in_place = same_everywhere([&](const Exec& exec) {
      Floats out = x;
      scale_columns(exec, factors.data(), out.data(), kDottedRows, width, kDottedStride, out.data());
      return out;
    });
    for (int64_t i = 0; i < kDottedRows * kDottedStride; ++i) {
      const bool within = i % kDottedStride < width;
      const auto at = static_cast<size_t>(i), column = static_cast<size_t>(i % kDottedStride);
      EXPECT_EQ(y[at], within ? factors[column] * x[at] : 7.0F) << i;
      EXPECT_EQ(in_place[at], within ? y[at] : x[at]) << i;
    }
  }
}

// One chain over all rows: a matrix in two parts gives the bits of the whole.
TEST(Columns, DotsAddToOldSums) {
  for (const int64_t width : {1, 16, 64, 133}) {
    const Floats x = noise(kDottedRows * kDottedStride, 1), y = noise(kDottedRows * kDottedStride, 2),
                 factors = noise(width, 3), old = noise(width, 4);
    const auto sums_of = [&](const std::vector<int64_t>& parts) {
      return same_everywhere([&](const Exec& exec) {
        Floats sums = old;
        int64_t first = 0;
        for (const int64_t rows : parts) {
          const ColumnDots dots{
              factors.data(), x.data() + first * kDottedStride, y.data() + first * kDottedStride, rows, width,
              kDottedStride};
          add_column_dots(exec, dots, sums.data());
          first += rows;
        }
        return sums;
      });
    };
    const Floats sums = sums_of({kDottedRows});
    for (int64_t c = 0; c < width; ++c) {
      const auto column = static_cast<size_t>(c);
      double wanted = old[column];
      for (int64_t r = 0; r < kDottedRows; ++r) {
        const auto at = static_cast<size_t>(r * kDottedStride + c);
        wanted += double{factors[column]} * x[at] * y[at];
      }
      EXPECT_NEAR(sums[column], wanted, 3e-6) << c;
    }
    EXPECT_TRUE(same_bits(sums_of({2, 0, 3}), sums));
  }
}

}  // namespace
}  // namespace collimate::tensor
