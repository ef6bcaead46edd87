#include "collimate/tensor/ops/dropout.h"

#include "collimate/base/at.h"
#include "collimate/base/philox.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kRows = 37;
constexpr uint64_t kLayer = 0x123456789abcdef0;

uint64_t row_key(int64_t row) { return base::mix(11, static_cast<uint64_t>(row)); }

std::vector<int32_t> halves_of_keys() {
  std::vector<int32_t> halves;
  for (const int shift : {0, 32})
    for (int64_t r = 0; r < kRows; ++r) halves.push_back(static_cast<int32_t>(row_key(r) >> shift));
  return halves;
}

// y of columns [first, first + width) of rows of noise, dropped at 0.3.
Floats dropped(int64_t first, int64_t width, int64_t all = 90) {
  const Floats x = noise(kRows * all, 5);
  Floats part(static_cast<size_t>(kRows * width));
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < width; ++c) base::at(part, r * width + c) = base::at(x, r * all + first + c);
  const std::vector<int32_t> keys = halves_of_keys();
  return same_everywhere([&](const Exec& exec) {
    Floats y = part;
    dropout(exec, {keys.data(), kLayer, 0.3F, first}, y.data(), kRows, width, y.data());
    return y;
  });
}

TEST(Dropout, DropsByTheDrawsOfRowAndColumn) {
  const Floats x = noise(kRows * 90, 5), y = dropped(0, 90);
  int64_t kept = 0;
  for (int64_t i = 0; i < kRows * 90; ++i) {
    const uint64_t key = row_key(i / 90);
    const auto column = static_cast<uint32_t>(i % 90);
    const auto draws = base::philox4x32({column / 4, 0, static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)},
                                        {static_cast<uint32_t>(kLayer), static_cast<uint32_t>(kLayer >> 32)});
    const bool is_kept = draws[column % 4] * 0x1p-32 >= double{0.3F};
    EXPECT_EQ(base::at(y, i), is_kept ? base::at(x, i) * (1.0F / (1.0F - 0.3F)) : 0.0F) << i;
    kept += is_kept ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / (kRows * 90), 0.7, 0.03);
}

TEST(Dropout, OfSomeColumnsIsThatOfTheWhole) {
  const Floats whole = dropped(0, 90);
  for (const auto& [first, width] : {std::pair<int64_t, int64_t>{45, 45}, {7, 70}, {88, 2}}) {
    const Floats part = dropped(first, width);
    for (int64_t i = 0; i < kRows * width; ++i)
      EXPECT_EQ(base::at(part, i), base::at(whole, i / width * 90 + first + i % width)) << first << " " << i;
  }
}

TEST(Dropout, MayBeAdded) {
  const std::vector<int32_t> keys = halves_of_keys();
  const Floats x = noise(kRows * 20, 8), before = noise(kRows * 20, 9);
  Floats alone(x.size()), added = before;
  const Dropout half{keys.data(), kLayer, 0.5F};
  dropout({}, half, x.data(), kRows, 20, alone.data());
  dropout({}, half, x.data(), kRows, 20, added.data(), /*accumulate=*/true);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(added[i], before[i] + alone[i]);
}

}  // namespace
}  // namespace collimate::tensor
