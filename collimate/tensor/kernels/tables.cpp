#include "collimate/tensor/kernels/attention.h"
#include "collimate/tensor/kernels/isa.h"
#include "collimate/tensor/kernels/norm.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/kernels/softmax.h"

namespace collimate::tensor {
namespace {

// All machines with AVX-512, also those with AMX, use the AVX-512 table; only linear layers know more instruction sets.
template <typename Table>
const Table& pick(const Table& avx2, const Table& avx512) {
  return instruction_set() == InstructionSet::kAvx2 ? avx2 : avx512;
}

}  // namespace

const AttentionKernels& attention_kernels() { return pick(avx2::kAttention, avx512::kAttention); }
const NormKernels& norm_kernels() { return pick(avx2::kNorm, avx512::kNorm); }
const PointwiseKernels& pointwise_kernels() { return pick(avx2::kPointwise, avx512::kPointwise); }
const SoftmaxKernels& softmax_kernels() { return pick(avx2::kSoftmax, avx512::kSoftmax); }

}  // namespace collimate::tensor
