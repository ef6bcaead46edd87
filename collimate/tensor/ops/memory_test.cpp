#include "collimate/tensor/ops/memory.h"

#include <vector>

#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kRows = 70, kHeads = 3, kWidth = 5;

// Heads of 7 channels in rows of 30, of which 5 go to heads of 6 in rows of 25, the first channel of a head aside.
TEST(Heads, GoFromOnePlaceToAnother) {
  const Floats from = noise(kRows * 30, 3);
  const Floats to = same_everywhere([&](const Exec& exec) {
    Floats y = constant(kRows * 25, -1);
    copy_heads(exec, {kRows, kHeads, kWidth}, {from.data(), 30, 7}, {y.data() + 1, 25, 6});
    add_heads(exec, {kRows, kHeads, kWidth}, {from.data(), 30, 7}, {y.data() + 1, 25, 6});
    return y;
  });
  for (int64_t i = 0; i < kRows * 25; ++i) {
    const int64_t head = i % 25 / 6, channel = i % 25 % 6 - 1;
    const bool is_of_head = head < kHeads && channel >= 0;
    const float want = is_of_head ? 2 * from[static_cast<size_t>(i / 25 * 30 + head * 7 + channel)] : -1;
    EXPECT_EQ(to[static_cast<size_t>(i)], want) << i;
  }
}

// One for all heads is copied to each, and is their sum, one after the other, on the way back.
TEST(Heads, MayBeOneForAll) {
  const Floats one = noise(kRows * kWidth, 4), many = noise(kRows * kHeads * kWidth, 5);
  Floats copies = constant(kRows * kHeads * kWidth, 0);
  copy_heads({}, {kRows, kHeads, kWidth}, {one.data(), kWidth, 0}, {copies.data(), kHeads * kWidth, kWidth});
  const Floats sums = same_everywhere([&](const Exec& exec) {
    Floats y = constant(kRows * kWidth, 0.5F);
    add_heads(exec, {kRows, kHeads, kWidth}, {many.data(), kHeads * kWidth, kWidth}, {y.data(), kWidth, 0});
    return y;
  });
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kWidth; ++c) {
      float sum = 0.5F;
      for (int64_t h = 0; h < kHeads; ++h) {
        const auto at = static_cast<size_t>((r * kHeads + h) * kWidth + c);
        EXPECT_EQ(copies[at], one[static_cast<size_t>(r * kWidth + c)]);
        sum += many[at];
      }
      EXPECT_EQ(sums[static_cast<size_t>(r * kWidth + c)], sum);
    }
  }
}

}  // namespace
}  // namespace collimate::tensor
