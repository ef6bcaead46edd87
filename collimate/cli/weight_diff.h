#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/model/safetensors.h"

namespace collimate::cli {

// Opens a model directory's tensors as they are compared and shown. Values of four or eight bits with scales beside
// them become one tensor whose values are the products, which the log says. Throws InputError when files cannot be
// read.
std::unique_ptr<model::TensorDirectory> shown_tensors(const std::string& directory);
// Returns the sizes that a tensor is shown with. For values of four bits these are the sizes that it has in files
// without scales, where rows and columns are swapped.
std::vector<int64_t> shown_sizes(const model::TensorEntry& entry);

// A TensorDifference says how a tensor of model directory a differs from the one of that name in b.
struct TensorDifference {
  std::string name;
  std::vector<int64_t> sizes;
  std::string missing_in;        // the directory without it, or b if the sizes differ; "": both have it
  double largest = 0;            // largest |difference|; infinite where either is NaN and the bits differ
  int64_t differing = 0;         // number of values that differ
  std::optional<int64_t> first;  // index of the first value that differs, in the order of the shown sizes
  float first_a = 0, first_b = 0;
  bool differs() const { return !missing_in.empty() || first.has_value(); }
};

// Compares every tensor of two model directories, in order of name, with values as fp32. Throws InputError as
// shown_tensors does.
std::vector<TensorDifference> weight_differences(const std::string& a, const std::string& b);

// Returns the index of a value by dimensions, "[3, 17]".
std::string place_of(int64_t index, const std::vector<int64_t>& sizes);

// A TensorSummary describes the values of a tensor: smallest, largest, mean and L2 norm.
struct TensorSummary {
  double least = 0, most = 0, mean = 0, norm = 0;
  int64_t not_finite = 0;  // number of values that are not finite; the other members leave them out
};
TensorSummary summary_of(const model::TensorEntry& entry, const std::string& where);
// Returns the first `count` values of the tensor in the order of its shown sizes, or all if it has fewer.
std::vector<float> first_values(const model::TensorEntry& entry, const std::string& where, int64_t count);

}  // namespace collimate::cli
