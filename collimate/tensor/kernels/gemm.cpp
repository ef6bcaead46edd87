#include "collimate/tensor/kernels/gemm.h"

#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

const GemmKernels& gemm_kernels() {
  switch (instruction_set()) {
    case InstructionSet::kAmx:
      return amx::kGemm;
    case InstructionSet::kAvx512:
      return avx512::kGemm;
    case InstructionSet::kAvx2:
      break;
  }
  return avx2::kGemm;
}

}  // namespace collimate::tensor
