#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/model/safetensors.h"

namespace collimate::cli {

// A model directory's tensors as they are compared and shown. Values of four or eight bits that have scales beside them
// are one tensor, whose values are the products, which the log says. InputError where files cannot be read.
std::unique_ptr<model::TensorDirectory> shown_tensors(const std::string& directory);
// The sizes that a tensor is shown with: of values of four bits, those that it has in files without scales, where rows
// and columns are the other way round.
std::vector<int64_t> shown_sizes(const model::TensorEntry& entry);

// How a tensor of one model directory differs from that of another.
struct TensorDifference {
  std::string name;
  std::vector<int64_t> sizes;
  std::string missing_in;        // the directory that has none, or of other sizes; "": both have it
  double largest = 0;            // |difference|; NaN counts as infinite where the other is none
  int64_t differing = 0;         // values
  std::optional<int64_t> first;  // the index of the first one, in the file's order
  float first_a = 0, first_b = 0;
  bool differs() const { return !missing_in.empty() || first.has_value(); }
};

// Every tensor of two model directories, by name; their values as fp32. InputError as of shown_tensors.
std::vector<TensorDifference> weight_differences(const std::string& a, const std::string& b);

// The index of a value by dims: "[3, 17]".
std::string place_of(int64_t index, const std::vector<int64_t>& sizes);

// The numbers of a tensor, in the order of its shown sizes, as below.
struct TensorSummary {
  double least = 0, most = 0, mean = 0, norm = 0;
  int64_t not_finite = 0;  // which count in none of the others
};
TensorSummary summary_of(const model::TensorEntry& entry, const std::string& where);
// The first `count` values of the tensor, at most all.
std::vector<float> first_values(const model::TensorEntry& entry, const std::string& where, int64_t count);

}  // namespace collimate::cli
