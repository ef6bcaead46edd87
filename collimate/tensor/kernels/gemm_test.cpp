#include "collimate/tensor/kernels/gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "collimate/base/log.h"

namespace collimate::tensor {
namespace {

// Gives what the check logs of kernels, beside whether it trusts them.
std::string logged(const GemmKernels& kernels, bool trusted) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "gemm_test.log";
  std::filesystem::remove(path);
  testing::internal::CaptureStderr();
  {
    const base::LogFile file(path);
    EXPECT_EQ(has_bits_of_fma(kernels, avx2::kGemm, "an instruction"), trusted);
  }
  testing::internal::GetCapturedStderr();
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Each order of additions in the other's place, as a processor would have it that adds in another one.
TEST(Gemm, KernelsOfAnotherOrderAreNamedAndNotUsed) {
  EXPECT_EQ(logged(avx2::kGemm, true), "");
  GemmKernels other = avx2::kGemm;
  other.amx = avx2::kGemm.dot;
  EXPECT_THAT(logged(other, false), testing::HasSubstr("warning an instruction adds in another order"));
  other = avx2::kGemm;
  other.dot = avx2::kGemm.amx;
  EXPECT_THAT(logged(other, false), testing::HasSubstr("warning an instruction adds in another order"));
}

void halve_beyond(const GemmBlock& block, int64_t row) {
  for (int64_t r = row; r < block.rows; ++r) block.sum[r * block.sum_stride] /= 2;
}
// Wrong only where a second tile, or a second pair of tiles, holds rows, or where sums begin from memory.
void wrong_second_tile(const GemmBlock& block) { avx2::kGemm.amx.block(block), halve_beyond(block, 16); }
void wrong_second_pair(const GemmBlock& block) { avx2::kGemm.amx.block(block), halve_beyond(block, 32); }
void wrong_fourth_tile(const GemmBlock& block) { avx2::kGemm.amx.block(block), halve_beyond(block, 48); }
void wrong_accumulation(const GemmBlock& block) {
  avx2::kGemm.amx.block(block);
  if (!block.first) halve_beyond(block, 0);
}

TEST(Gemm, TheCheckReachesEachTileEachPairAndSumsFromMemory) {
  for (void (*wrong)(const GemmBlock&) :
       {wrong_second_tile, wrong_second_pair, wrong_fourth_tile, wrong_accumulation}) {
    GemmKernels other = avx2::kGemm;
    other.amx.block = wrong;
    logged(other, false);
  }
}

}  // namespace
}  // namespace collimate::tensor
