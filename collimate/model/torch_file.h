#pragma once

#include <string>

#include "collimate/model/safetensors.h"

namespace collimate::model {

// A mapped pytorch_model.bin: the state dict that torch.save wrote since version 1.6, in a zip archive whose records
// lie as they are. Its pickle is read by read_pickled_tensors, which executes nothing. InputError for another file,
// tensors that are not contiguous, or that reach beyond their record or the file.
class TorchFile final : public TensorFile {
 public:
  explicit TorchFile(const std::string& path);
};

}  // namespace collimate::model
