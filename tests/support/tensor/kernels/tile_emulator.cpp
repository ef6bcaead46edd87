#include "tests/support/tensor/kernels/tile_emulator.h"

#include <xmmintrin.h>

#include <bit>
#include <cmath>
#include <vector>

namespace collimate::tensor::emulated {
namespace {

float widened(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }

// Denormals are zero in and out and rounding is to nearest even, as these instructions have it.
class RoundingOfTiles {
 public:
  RoundingOfTiles() : saved_(_mm_getcsr()) { _mm_setcsr(0x9fc0); }
  ~RoundingOfTiles() { _mm_setcsr(saved_); }
  RoundingOfTiles(const RoundingOfTiles&) = delete;
  RoundingOfTiles& operator=(const RoundingOfTiles&) = delete;

 private:
  unsigned saved_;
};

}  // namespace

bool TileEmulator::holds(bool condition, const char* otherwise) {
  if (!condition && fault_.empty()) fault_ = otherwise;
  return condition;
}

bool TileEmulator::usable(int index, const char* instruction) {
  ++instructions_;
  const bool configured = index < kTiles && tile(index).rows > 0;
  if (!configured && fault_.empty()) fault_ = std::string(instruction) + " of a tile that is not configured";
  return configured;
}

void TileEmulator::configure(const void* config) {
  ++instructions_;
  std::array<uint8_t, 64> bytes;
  std::memcpy(bytes.data(), config, bytes.size());
  std::array<Tile, kTiles> made = {};
  bool good = holds(bytes[0] == 1, "ldtilecfg of another palette than 1") && holds(bytes[1] == 0, "a start row");
  for (size_t i = 0; i < 16 && good; ++i) {
    const int row_bytes = bytes[16 + 2 * i] + 256 * bytes[17 + 2 * i], rows = bytes[48 + i];
    good = holds(i < 14 ? bytes[2 + i] == 0 : true, "ldtilecfg with a reserved byte") &&
           holds(row_bytes <= kMostBytes && rows <= kMostRows, "ldtilecfg of a tile that is too large") &&
           holds((row_bytes == 0) == (rows == 0), "ldtilecfg of a tile with rows or columns alone") &&
           holds(i < kTiles || rows == 0, "ldtilecfg of a ninth tile");
    if (i < kTiles) made[i].rows = rows, made[i].row_bytes = row_bytes;
  }
  if (good) tiles_ = made;
}

void TileEmulator::release() {
  ++instructions_;
  tiles_ = {};
}

void TileEmulator::zero(int index) {
  if (usable(index, "tilezero")) tile(index).row = {};
}

void TileEmulator::load(int index, const void* from, int64_t stride) {
  if (!usable(index, "tileloadd")) return;
  Tile& to = tile(index);
  to.row = {};
  for (int r = 0; r < to.rows; ++r) {
    std::memcpy(to.row[static_cast<size_t>(r)].data(), static_cast<const char*>(from) + r * stride,
                static_cast<size_t>(to.row_bytes));
  }
}

void TileEmulator::store(int index, void* to, int64_t stride) {
  if (!usable(index, "tilestored")) return;
  const Tile& from = tile(index);
  for (int r = 0; r < from.rows; ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, from.row[static_cast<size_t>(r)].data(),
                static_cast<size_t>(from.row_bytes));
  }
}

void TileEmulator::multiply_bf16(int sums, int left, int right) {
  if (!usable(sums, "tdpbf16ps") || !usable(left, "tdpbf16ps") || !usable(right, "tdpbf16ps")) return;
  Tile& c = tile(sums);
  const Tile &a = tile(left), &b = tile(right);
  if (!holds(sums != left && left != right && sums != right, "tdpbf16ps of one tile twice") ||
      !holds(c.row_bytes % 4 == 0 && a.row_bytes % 4 == 0 && b.row_bytes % 4 == 0, "tdpbf16ps of half a pair") ||
      !holds(c.rows == a.rows && a.row_bytes / 4 == b.rows && c.row_bytes == b.row_bytes,
             "tdpbf16ps of tiles whose sizes do not meet")) {
    return;
  }
  const RoundingOfTiles rounding;
  for (int m = 0; m < c.rows; ++m) {
    for (int n = 0; n < c.row_bytes / 4; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < b.rows; ++k) {
        even = std::fma(widened(a.at<uint16_t>(m, 2 * k)), widened(b.at<uint16_t>(k, 2 * n)), even);
        odd = std::fma(widened(a.at<uint16_t>(m, 2 * k + 1)), widened(b.at<uint16_t>(k, 2 * n + 1)), odd);
      }
      const float pairs = even + odd, sum = c.at<float>(m, n) + pairs;
      std::memcpy(c.row[static_cast<size_t>(m)].data() + 4 * static_cast<size_t>(n), &sum, sizeof sum);
    }
  }
}

}  // namespace collimate::tensor::emulated
