#include "collimate/tensor/compute_type.h"

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

const std::vector<std::string>& compute_type_words() {
  static const std::vector<std::string> words = {"float32", "bfloat16", "bfloat16_amx", "bfloat16_dot"};
  return words;
}

ComputeType compute_type_of(std::string_view word) {
  if (word == "bfloat16")
    return instruction_set() == InstructionSet::kAmx ? ComputeType::kBFloat16Amx : ComputeType::kBFloat16Dot;
  for (const ComputeType type : {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot})
    if (word == name_of(type)) return type;
  throw base::InputError(
      base::expectation("compute", "float32, bfloat16, bfloat16_amx or bfloat16_dot", std::string(word)));
}

std::string_view name_of(ComputeType type) {
  constexpr std::string_view kNames[] = {"float32", "bfloat16_amx", "bfloat16_dot"};
  return kNames[static_cast<int>(type)];
}

}  // namespace collimate::tensor
