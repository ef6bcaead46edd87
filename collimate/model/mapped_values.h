#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/model/peft_adapters.h"
#include "collimate/model/safetensors.h"
#include "collimate/shape/param_spec.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::model {

// Reads the values of a model's parameters from its mapped files, widened to fp32 as they are asked for. The files must
// not be truncated meanwhile; a file that is replaced by another of its name is still read as it was.
class MappedValues {
 public:
  // `entries` has one entry of `files` for each of `specs`. Unless `adapters` is null, what they add to a parameter is
  // added when it is read.
  MappedValues(std::string directory, std::unique_ptr<const TensorDirectory> files,
               std::vector<const TensorEntry*> entries, std::vector<shape::ParamSpec> specs,
               std::unique_ptr<const PeftAdapters> adapters);

  // Reads rows of a parameter [out, in] from `first` on into out [rows, width]; a parameter of a single dimension is
  // one row. Throws InputError as check_dtype, and for values that are not finite.
  void read(size_t index, int64_t first, std::span<float> out) const;
  // Writes rows first + ids of a parameter to out [rows, width] on the device, or adds them with `accumulate`. Throws
  // InputError for an id that the parameter does not have.
  void look_up(const tensor::Exec& exec, size_t index, std::span<const int32_t> ids, int64_t first, float* out,
               bool accumulate) const;
  // Packs the linear layer that begins at parameter `first`, with the parameters fused to it. Pages that were read
  // leave this process's memory; the system keeps the file's pages as long as it likes.
  void pack(const tensor::Exec& exec, size_t first, tensor::LinearPanels& panels) const;

  // Reads parameters that are neither linear layers nor embeddings, so norms and biases, into the device's memory;
  // those that run as one lie side by side. small() is null for other parameters.
  void load_small(const tensor::Exec& exec, const shape::ModelShape& shape);
  float* small(size_t index) const { return small_[index]; }
  int64_t small_bytes() const { return small_memory_.bytes(); }

 private:
  void read_own(size_t index, int64_t first, std::span<float> out) const;  // without what adapters add
  void read_rows(size_t index, int64_t first, std::span<float> out) const;
  PeftAdapters::Sum sum_of(size_t index) const;

  std::string directory_;
  std::unique_ptr<const TensorDirectory> files_;
  std::unique_ptr<const PeftAdapters> adapters_;
  std::vector<const TensorEntry*> entries_;
  std::vector<shape::ParamSpec> specs_;
  tensor::Buffer small_memory_;
  std::vector<float*> small_;  // by parameter
};

}  // namespace collimate::model
