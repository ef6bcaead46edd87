#pragma once

#include <cstdint>

namespace collimate::tensor {

enum class ComputeType : uint8_t;  // compute_type.h; no standard library where instruction sets are compiled

// These are the inner loops of matrix products, one table per instruction set. The left operand is packed for one block
// of depth at a time; the right one lies in panels of kPanel columns, depth by depth. Between blocks of depth, sums are
// kept in fp32 memory, which loses nothing, so that each element is one chain over the whole depth.
constexpr int64_t kPanel = 32;
constexpr int64_t kDepthBlock = 384;  // a multiple of 32
constexpr int64_t kLeftStride = 400;  // floats between packed rows, an odd number of cache lines
constexpr int64_t kBf16Step = 32;     // depth of one AMX step; bf16 depths are padded to it

struct GemmBlock {
  const float* left = nullptr;  // packed by pack_rows or pack_columns
  int64_t rows = 0;
  int64_t depth = 0;            // at most kDepthBlock; for bf16 a multiple of 32
  const void* right = nullptr;  // the first panel at the block's first depth: fp32, bf16 pairs or int8
  int64_t panel_stride = 0;     // elements between panels
  int64_t panels = 0;
  float* sum = nullptr;  // [rows, sum_stride]
  int64_t sum_stride = 0;
  bool first = false;  // sums start from zero instead of from memory
};

// A GemmFinish turns sums into results: a balanced tree adds the chunks, the columns' scales multiply them, then bias
// and the old value are added.
struct GemmFinish {
  const float* sum = nullptr;  // [chunks][rows][sum_stride]
  int64_t sum_stride = 0;
  int64_t chunk_stride = 0;
  int chunks = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  const float* scale = nullptr;  // [columns] or null
  const float* bias = nullptr;   // [columns] or null
  bool accumulate = false;
  float* out = nullptr;
  int64_t out_stride = 0;
};

// Bf16Kernels compute products of bf16 operands in one order of additions (tensor/compute_type.h).
struct Bf16Kernels {
  // pack_rows takes left [rows, depth], pack_columns left^T [depth, rows], both row-major. They write
  // [rows][row_floats], rounded, with zeros up to the next multiple of 32 of depth, in the form that `block` reads.
  void (*pack_rows)(const float* from, int64_t stride, int64_t rows, int64_t depth, float* to);
  void (*pack_columns)(const float* from, int64_t stride, int64_t rows, int64_t depth, float* to);
  void (*block)(const GemmBlock& block);
  int64_t row_floats;
};

struct GemmKernels {
  int64_t tile_rows;
  // left [rows, depth], row-major -> [rows][kLeftStride]
  void (*pack_rows)(const float* from, int64_t stride, int64_t rows, int64_t depth, float* to);
  // left^T [depth, rows] row-major -> tiles of tile_rows: [tile][depth][tile_stride]
  void (*pack_columns)(const float* from, int64_t stride, int64_t rows, int64_t depth, float* to);
  int64_t tile_stride;
  // right [depth, columns] row-major -> panels [panel][depth][kPanel], zeros beyond `columns`
  void (*pack_right)(const float* from, int64_t stride, int64_t depth, int64_t columns, float* to);
  void (*block_rows)(const GemmBlock& block);
  void (*block_columns)(const GemmBlock& block);
  void (*block_rows_int8)(const GemmBlock& block);
  // right, rounded -> bf16 panels [panel][depth / 32][2 halves][16 pairs][16 columns][2]
  void (*pack_right_bf16)(const float* from, int64_t stride, int64_t depth, int64_t columns, uint16_t* to);
  Bf16Kernels amx, dot;
  void (*finish)(const GemmFinish& finish);

  const Bf16Kernels& bf16(ComputeType type) const;
};

namespace avx2 {
extern const GemmKernels kGemm;
}
namespace avx512 {
extern const GemmKernels kGemm;
}
namespace avx512_bf16 {
extern const GemmKernels kGemm;
}
namespace amx {
extern const GemmKernels kGemm;
}

// Returns the kernels of instruction_set(). bf16 instructions are used only if small products at the first call have
// the bits of the FMA kernels; where they differ, a warning names the instruction once.
const GemmKernels& gemm_kernels();

// Returns whether small bf16 products, in both orders of additions, have the same bits as those of `fma`. Warns with
// the name of the instruction if not.
bool has_bits_of_fma(const GemmKernels& kernels, const GemmKernels& fma, const char* instruction);

}  // namespace collimate::tensor
