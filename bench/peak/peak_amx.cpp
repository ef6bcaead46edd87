#include <immintrin.h>

#include <cstdint>

namespace collimate::tensor::amx {

float tile_loop(int64_t steps);

// Runs four chains of tdpbf16ps in registers, as many as the product's kernel has: tiles 0 to 3 sum up the products of
// tiles 4 and 5 with 6 and 7.
float tile_loop(int64_t steps) {
  constexpr int kRows = 16, kRowBytes = 64;
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int t = 0; t < 8; ++t) config.row_bytes[t] = kRowBytes, config.rows[t] = kRows;
  alignas(64) uint16_t operand[kRows * kRowBytes / 2];
  for (uint16_t& bf16 : operand) bf16 = 0x3c00;  // 2^-7
  alignas(64) float sums[kRows * kRowBytes / 4];
  asm volatile("ldtilecfg %0" ::"m"(config));  // no intrinsic, as in gemm_amx_kernel.inc: it names 8 of the 64 bytes
  _tile_loadd(4, operand, kRowBytes);
  _tile_loadd(5, operand, kRowBytes);
  _tile_loadd(6, operand, kRowBytes);
  _tile_loadd(7, operand, kRowBytes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < steps; ++s) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(3, sums, kRowBytes);
  _tile_release();
  return sums[0];
}

}  // namespace collimate::tensor::amx
