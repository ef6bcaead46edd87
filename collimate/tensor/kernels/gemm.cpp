#include "collimate/tensor/kernels/gemm.h"

#include <cstring>

#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kRows = 19;
constexpr int64_t kDepth = 96;

// One small bf16 product with operands whose order of summation shows.
void bf16_product(const GemmKernels& kernels, const float* x, const uint16_t* w, float* sum) {
  alignas(64) float left[kRows * kLeftStride] = {};
  kernels.pack_rows_bf16(x, kDepth, kRows, kDepth, left);
  GemmBlock block;
  block.left = left;
  block.rows = kRows;
  block.depth = kDepth;
  block.right = w;
  block.panel_stride = kDepth * kPanel;
  block.panels = 1;
  block.sum = sum;
  block.sum_stride = kPanel;
  block.first = true;
  kernels.block_bf16(block);
}

// AMX's order of additions is measured, not documented: a machine that has another one must not be believed.
bool amx_keeps_the_order() {
  alignas(64) float x[kRows * kDepth];
  alignas(64) uint16_t w[kDepth * kPanel];
  uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525U + 1013904223U; };
  for (float& v : x) v = static_cast<float>(static_cast<int32_t>(next())) * 1e-9F;
  for (uint16_t& v : w) v = static_cast<uint16_t>((next() >> 16 & 0x807fU) | 0x3f80U);
  alignas(64) float by_amx[kRows * kPanel];
  alignas(64) float by_fma[kRows * kPanel];
  bf16_product(amx::kGemm, x, w, by_amx);
  bf16_product(avx512::kGemm, x, w, by_fma);
  return std::memcmp(by_amx, by_fma, sizeof(by_amx)) == 0;
}

}  // namespace

const GemmKernels& gemm_kernels() {
  switch (instruction_set()) {
    case InstructionSet::kAmx: {
      static const bool trusted = amx_keeps_the_order();
      return trusted ? amx::kGemm : avx512::kGemm;
    }
    case InstructionSet::kAvx512:
      return avx512::kGemm;
    case InstructionSet::kAvx2:
      break;
  }
  return avx2::kGemm;
}

}  // namespace collimate::tensor
