#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::tensor {

// Type of the operands of matrix products; activations and accumulation are fp32 in all. Int8 is of weights alone, each
// output's with a scale of its own, and without a backward: for models that generate and are not trained. The two bf16
// types differ in the order of their additions only, which is that of the instruction they are named after. Every
// machine computes both with the same bits, the one it lacks by FMA, at half of fp32's speed or a little more.
enum class ComputeType : uint8_t { kFloat32, kBFloat16Amx, kBFloat16Dot, kInt8 };
inline bool is_bf16(ComputeType type) { return type == ComputeType::kBFloat16Amx || type == ComputeType::kBFloat16Dot; }

// "float32", "bfloat16", "bfloat16_amx", "bfloat16_dot": the words of configs. "bfloat16" is the order that this
// machine's best instruction set has: amx where there are tiles, else dot.
const std::vector<std::string>& compute_type_words();
// Gives the words of configs and "int8".
const std::vector<std::string>& inference_type_words();
// Throws InputError for any other word.
ComputeType compute_type_of(std::string_view word);
// The name is never "bfloat16".
std::string_view name_of(ComputeType type);

}  // namespace collimate::tensor
