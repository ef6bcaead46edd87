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

// The values of a model's parameters where its files are mapped, widened to fp32 as they are asked for. The files must
// not be truncated meanwhile; one that is replaced by another of its name stays as it was.
class MappedValues {
 public:
  // `entries`: one of `files` for each of `specs`; what `adapters`, or null, add to one is added as it is read.
  MappedValues(std::string directory, std::unique_ptr<const TensorDirectory> files,
               std::vector<const TensorEntry*> entries, std::vector<shape::ParamSpec> specs,
               std::unique_ptr<const PeftAdapters> adapters);

  // out [rows, width]: rows of a parameter [out, in] from `first` on; one of a single dimension is one row. InputError
  // as check_dtype.
  void read(size_t index, int64_t first, std::span<float> out) const;
  // out [rows, width] on the device (+)= rows first + ids of a parameter. InputError for an id that it does not have.
  void look_up(const tensor::Exec& exec, size_t index, std::span<const int32_t> ids, int64_t first, float* out,
               bool accumulate) const;
  // Packs the linear layer that begins at a parameter, with those fused to it. What was read leaves this process's
  // memory; the system keeps the file's pages as long as it likes.
  void pack(const tensor::Exec& exec, size_t first, tensor::LinearPanels& panels) const;

  // Reads what is neither a linear layer nor an embedding into the device's memory: norms and biases, those that run as
  // one side by side. Null for others.
  void load_small(const tensor::Exec& exec, const shape::ModelShape& shape);
  float* small(size_t index) const { return small_[index]; }
  int64_t small_bytes() const { return small_memory_.bytes(); }

 private:
  void read_own(size_t index, int64_t first, std::span<float> out) const;  // without adapters
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
