#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/model/safetensors.h"
#include "collimate/shape/model_shape.h"

namespace collimate::model {

// Describes a matrix whose numbers lie in a file's tensor: number (row, column) is at first + row · row_step + column
// · column_step.
struct MatrixInTensor {
  const TensorEntry* entry = nullptr;  // null: there is none
  std::vector<int64_t> sizes;          // [rows, columns]
  size_t first = 0, row_step = 0, column_step = 1;

  // Returns the matrix that is all of a tensor [rows, columns].
  static MatrixInTensor all_of(const TensorEntry& entry);
  // Reads a row into `out` [columns]. Throws InputError as read_floats.
  void read_row(size_t row, const std::string& where, std::span<float> out) const;
};

// An adapter adds this to a layer's weights: scale · b a. With DoRA the sum's rows then get lengths.
struct LowRank {
  MatrixInTensor a;  // [rank, in]
  MatrixInTensor b;  // [out, rank]
  float scale = 1;
  int64_t rank = 0;                      // as the adapters' config says
  double alpha = 0;                      // the same
  const TensorEntry* lengths = nullptr;  // [out]; null without DoRA
};

// Describes a parameter [E, rows, columns] of all experts of a block, as transformers 5 has it. The rows of an expert
// are those of `matrices`, one matrix below the other.
struct FusedParameter {
  std::string name;  // "gate_up_proj"
  int64_t experts = 0, rows = 0, columns = 0;
  std::vector<std::string> matrices;  // their names within an expert
};

// Adapters of such a parameter (PEFT's target_parameters) have the factors of all experts in two tensors: A [E · rank,
// in] expert by expert, B [out, rank · E] with the expert's number as the fastest index. PEFT has taken [E, rows,
// columns] for [E, in, out], and in later versions for [E, out, in]; the sizes say which (fits).
enum class FusedOrder { kRowsAreOut, kRowsAreIn };
bool fits(const FusedParameter& parameter, FusedOrder order, const TensorEntry& a, const TensorEntry& b);

// Returns the adapter of one matrix of one expert, as a part of `fused`.
LowRank of_expert(const FusedParameter& parameter, FusedOrder order, const LowRank& fused, int64_t expert,
                  size_t matrix);

}  // namespace collimate::model
