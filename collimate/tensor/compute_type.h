#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::tensor {

// A ComputeType is the type of the operands of matrix products; activations and accumulation are fp32 in all of them.
// With kInt8 only the weights are int8, with one scale for each output, and there is no backward: it serves models that
// generate and are not trained. The two bf16 types differ only in the order of their additions, which is that of the
// instruction they are named after. Every machine computes both with the same bits: a machine without that instruction
// uses FMA, at half of fp32's speed or a little more.
enum class ComputeType : uint8_t { kFloat32, kBFloat16Amx, kBFloat16Dot, kInt8 };
inline bool is_bf16(ComputeType type) { return type == ComputeType::kBFloat16Amx || type == ComputeType::kBFloat16Dot; }

// Returns the words of configs: "float32", "bfloat16", "bfloat16_amx" and "bfloat16_dot". "bfloat16" stands for the
// order of additions of this machine's best instruction set: amx where it has tiles, else dot.
const std::vector<std::string>& compute_type_words();
// Returns the words of configs and "int8".
const std::vector<std::string>& inference_type_words();
// Throws InputError for any other word.
ComputeType compute_type_of(std::string_view word);
// Returns the word of a type, which is never "bfloat16".
std::string_view name_of(ComputeType type);

}  // namespace collimate::tensor
