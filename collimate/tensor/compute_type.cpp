#include "collimate/tensor/compute_type.h"

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

const std::vector<std::string>& compute_type_words() {
  static const std::vector<std::string> words = {"float32", "bfloat16", "bfloat16_amx", "bfloat16_dot"};
  return words;
}

const std::vector<std::string>& inference_type_words() {
  static const std::vector<std::string> kWords = [] {
    std::vector<std::string> words = compute_type_words();
    words.emplace_back("int8");
    return words;
  }();
  return kWords;
}

ComputeType compute_type_of(std::string_view word) {
  if (word == "bfloat16")
    return instruction_set() == InstructionSet::kAmx ? ComputeType::kBFloat16Amx : ComputeType::kBFloat16Dot;
  for (const ComputeType type :
       {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot, ComputeType::kInt8})
    if (word == name_of(type)) return type;
  throw base::InputError(
      base::expectation("compute", "float32, bfloat16, bfloat16_amx, bfloat16_dot or int8", std::string(word)));
}

std::string_view name_of(ComputeType type) {
  constexpr std::string_view kNames[] = {"float32", "bfloat16_amx", "bfloat16_dot", "int8"};
  return kNames[static_cast<int>(type)];
}

}  // namespace collimate::tensor
