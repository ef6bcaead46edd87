#include "collimate/tensor/ops/memory.h"

#include <vector>

#include "collimate/base/at.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kMovedRows = 70, kMovedHeads = 3, kMovedWidth = 5;

// Heads of 7 channels in rows of 30, of which 5 go to heads of 6 in rows of 25, the first channel of a head aside.
TEST(Heads, GoFromOnePlaceToAnother) {
  const Floats from = noise(kMovedRows * 30, 3);
  const Floats to = same_everywhere([&](const Exec& exec) {
    Floats y = constant(kMovedRows * 25, -1);
    copy_heads(exec, {kMovedRows, kMovedHeads, kMovedWidth}, {from.data(), 30, 7}, {y.data() + 1, 25, 6});
    add_heads(exec, {kMovedRows, kMovedHeads, kMovedWidth}, {from.data(), 30, 7}, {y.data() + 1, 25, 6});
    return y;
  });
  for (int64_t i = 0; i < kMovedRows * 25; ++i) {
    const int64_t head = i % 25 / 6, channel = i % 25 % 6 - 1;
    const bool is_of_head = head < kMovedHeads && channel >= 0;
    const float want = is_of_head ? 2 * base::at(from, i / 25 * 30 + head * 7 + channel) : -1;
    EXPECT_EQ(base::at(to, i), want) << i;
  }
}

// One for all heads is copied to each, and is their sum, one after the other, on the way back.
TEST(Heads, MayBeOneForAll) {
  const Floats one = noise(kMovedRows * kMovedWidth, 4), many = noise(kMovedRows * kMovedHeads * kMovedWidth, 5);
  Floats copies = constant(kMovedRows * kMovedHeads * kMovedWidth, 0);
  copy_heads({}, {kMovedRows, kMovedHeads, kMovedWidth}, {one.data(), kMovedWidth, 0},
             {copies.data(), kMovedHeads * kMovedWidth, kMovedWidth});
  const Floats sums = same_everywhere([&](const Exec& exec) {
    Floats y = constant(kMovedRows * kMovedWidth, 0.5F);
    add_heads(exec, {kMovedRows, kMovedHeads, kMovedWidth}, {many.data(), kMovedHeads * kMovedWidth, kMovedWidth},
              {y.data(), kMovedWidth, 0});
    return y;
  });
  for (int64_t r = 0; r < kMovedRows; ++r) {
    for (int64_t c = 0; c < kMovedWidth; ++c) {
      float sum = 0.5F;
      for (int64_t h = 0; h < kMovedHeads; ++h) {
        const auto at = static_cast<size_t>((r * kMovedHeads + h) * kMovedWidth + c);
        EXPECT_EQ(copies[at], base::at(one, r * kMovedWidth + c));
        sum += many[at];
      }
      EXPECT_EQ(base::at(sums, r * kMovedWidth + c), sum);
    }
  }
}

}  // namespace
}  // namespace collimate::tensor
