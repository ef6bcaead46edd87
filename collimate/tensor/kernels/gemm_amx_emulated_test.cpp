#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "collimate/tensor/kernels/gemm.h"
#include "tests/support/tensor/kernels/gemm_avx2tiles.h"
#include "tests/support/tensor/kernels/tile_emulator.h"

namespace collimate::tensor {
namespace {

using emulated::EmulatedTiles;
using emulated::TileEmulator;

struct Case {
  int64_t rows = 0, depth = 0, panels = 0, sum_stride = 0;
  std::vector<float> left;          // [rows][kLeftStride], values that bf16 holds
  std::vector<uint16_t> left_bf16;  // the same
  std::vector<uint16_t> right;
  std::vector<float> sums;  // a tile's rows more, which stay as they are
};

// Values of all sizes, denormals, infinities and not-a-number among them.
float any_bf16(std::mt19937& random) {
  const uint32_t bits = random();
  const bool ordinary = random() % 64 != 0;
  return std::bit_cast<float>((ordinary ? (bits & 0x83ffffffU) + 0x3e000000U : bits) & 0xffff0000U);
}

Case random_case(std::mt19937& random) {
  Case c;
  c.rows = 1 + random() % 80, c.depth = kBf16Step * (1 + random() % 4), c.panels = 1 + random() % 2;
  c.sum_stride = kPanel * c.panels + 16 * (random() % 2);
  c.left.resize(static_cast<size_t>(c.rows * kLeftStride));
  for (float& v : c.left) v = any_bf16(random);
  for (const float v : c.left) c.left_bf16.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16));
  std::vector<float> right(static_cast<size_t>(c.depth * kPanel * c.panels));
  for (float& v : right) v = any_bf16(random);
  c.right.resize(right.size());
  emulated::pack_right(right.data(), kPanel * c.panels, c.depth, kPanel * c.panels, c.right.data());
  c.sums.resize(static_cast<size_t>((c.rows + 16) * c.sum_stride));
  for (float& v : c.sums) v = any_bf16(random);
  return c;
}

std::vector<float> product(const Case& c, void (*block_of)(const GemmBlock&), const void* left, bool first) {
  std::vector<float> sums = c.sums;
  GemmBlock block;
  block.left = static_cast<const float*>(left);
  block.rows = c.rows, block.depth = c.depth;
  block.right = c.right.data(), block.panel_stride = c.depth * kPanel, block.panels = c.panels;
  block.sum = sums.data(), block.sum_stride = c.sum_stride;
  block.first = first;
  block_of(block);
  return sums;
}

// Bits are equal, or both are not a number: which one of two that meet is kept is no part of the order of additions.
int64_t differences(const std::vector<float>& a, const std::vector<float>& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = a[i] != a[i] && b[i] != b[i];
    count += both_nan || std::memcmp(&a[i], &b[i], sizeof(float)) == 0 ? 0 : 1;
  }
  return count;
}

TEST(EmulatedAmx, TheKernelHasTheBitsOfTheFmaOrder) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Case c = random_case(random);
    for (const bool first : {true, false}) {
      const std::vector<float> expected = product(c, avx2::kGemm.amx.block, c.left.data(), first);
      const EmulatedTiles tiles;
      const std::vector<float> got = product(c, emulated::block_by_tiles, c.left_bf16.data(), first);
      ASSERT_EQ(tiles.emulator().fault(), "");
      ASSERT_EQ(differences(got, expected), 0)
          << c.rows << " rows, depth " << c.depth << ", " << c.panels << " panels, first " << first;
    }
  }
}

// Tiles of `rows` rows of `row_bytes` bytes each.
struct Config {
  uint8_t bytes[64] = {1};
  Config& tile(size_t index, int rows, int row_bytes) {
    bytes[16 + 2 * index] = static_cast<uint8_t>(row_bytes);
    bytes[48 + index] = static_cast<uint8_t>(rows);
    return *this;
  }
};

std::string fault_of(void (*run)(TileEmulator&)) {
  TileEmulator tiles;
  run(tiles);
  return tiles.fault();
}

TEST(EmulatedAmx, FaultsAreThoseOfTheProcessor) {
  EXPECT_EQ(fault_of([](TileEmulator& t) { t.zero(0); }), "tilezero of a tile that is not configured");
  EXPECT_EQ(fault_of([](TileEmulator& t) { t.configure(Config().tile(0, 17, 64).bytes); }),
            "ldtilecfg of a tile that is too large");
  EXPECT_EQ(fault_of([](TileEmulator& t) { t.configure(Config().tile(3, 1, 0).bytes); }),
            "ldtilecfg of a tile with rows or columns alone");
  EXPECT_EQ(fault_of([](TileEmulator& t) { t.configure(Config().tile(8, 1, 4).bytes); }), "ldtilecfg of a ninth tile");
  EXPECT_EQ(fault_of([](TileEmulator& t) {
              t.configure(Config().tile(0, 4, 64).tile(1, 4, 64).tile(2, 15, 64).bytes);
              t.multiply_bf16(0, 1, 2);
            }),
            "tdpbf16ps of tiles whose sizes do not meet");
  EXPECT_EQ(fault_of([](TileEmulator& t) {
              t.configure(Config().tile(0, 4, 64).bytes);
              t.release();
              t.zero(0);
            }),
            "tilezero of a tile that is not configured");
}

}  // namespace
}  // namespace collimate::tensor
