#include "collimate/tensor/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "collimate/base/log.h"
#include "collimate/tensor/compute_type.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kDepth = 96;
// These heights are one AMX tile of 16 rows, one and a part, two and a part of the next pair, and two whole pairs.
constexpr std::array<int64_t, 4> kHeights = {16, 19, 33, 64};

// Computes a small bf16 product of `rows` rows twice: sums begin from zero, then from memory.
std::vector<float> bf16_product(const Bf16Kernels& kernels, const std::vector<float>& x, const uint16_t* w,
                                int64_t rows) {
  std::vector<float> sums(static_cast<size_t>(rows * kPanel)), left(static_cast<size_t>(rows * kLeftStride));
  kernels.pack_rows(x.data(), kDepth, rows, kDepth, left.data());
  GemmBlock block;
  block.left = left.data();
  block.rows = rows;
  block.depth = kDepth;
  block.right = w;
  block.panel_stride = kDepth * kPanel;
  block.panels = 1;
  block.sum = sums.data();
  block.sum_stride = kPanel;
  for (const bool first : {true, false}) {
    block.first = first;
    kernels.block(block);
  }
  return sums;
}

// Compares the products of two kernels. The order of additions inside bf16 instructions is known by measurement only,
// so that a machine with another order must be found out.
bool same_bits(const Bf16Kernels& one, const Bf16Kernels& other) {
  std::vector<float> x(kHeights.back() * kDepth);
  alignas(64) uint16_t w[kDepth * kPanel];
  uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525U + 1013904223U; };
  for (float& v : x) v = static_cast<float>(static_cast<int32_t>(next())) * 1e-9F;
  for (uint16_t& v : w) v = static_cast<uint16_t>((next() >> 16 & 0x807fU) | 0x3f80U);
  return std::all_of(kHeights.begin(), kHeights.end(), [&](int64_t rows) {
    const std::vector<float> of_one = bf16_product(one, x, w, rows), of_other = bf16_product(other, x, w, rows);
    return std::memcmp(of_one.data(), of_other.data(), of_one.size() * sizeof(float)) == 0;
  });
}

const GemmKernels& with_dot() {
  static const bool trusts = has_bits_of_fma(avx512_bf16::kGemm, avx512::kGemm, "vdpbf16ps (avx512_bf16)");
  return trusts ? avx512_bf16::kGemm : avx512::kGemm;
}

const GemmKernels& with_amx() {
  static const bool trusts = has_bits_of_fma(amx::kGemm, avx512::kGemm, "tdpbf16ps (amx)");
  return trusts ? amx::kGemm : with_dot();
}

}  // namespace

bool has_bits_of_fma(const GemmKernels& kernels, const GemmKernels& fma, const char* instruction) {
  if (same_bits(kernels.amx, fma.amx) && same_bits(kernels.dot, fma.dot)) return true;
  base::log_warning(
      "{} adds in another order on this processor than where it was measured: its kernels are not used, bf16 products "
      "are computed with the same bits by slower instructions",
      instruction);
  return false;
}

const Bf16Kernels& GemmKernels::bf16(ComputeType type) const { return type == ComputeType::kBFloat16Amx ? amx : dot; }

const GemmKernels& gemm_kernels() {
  switch (instruction_set()) {
    case InstructionSet::kAmx:
      return with_amx();
    case InstructionSet::kAvx512Bf16:
      return with_dot();
    case InstructionSet::kAvx512:
      return avx512::kGemm;
    case InstructionSet::kAvx2:
      break;
  }
  return avx2::kGemm;
}

}  // namespace collimate::tensor
