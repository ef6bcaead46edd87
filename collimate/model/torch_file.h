#pragma once

#include <string>

#include "collimate/model/safetensors.h"

namespace collimate::model {

// Maps a pytorch_model.bin: a state dict in the form of torch.save since version 1.6, a zip archive whose records are
// not compressed. The pickle in it is read by read_pickled_tensors, which executes nothing. Throws InputError for
// another file, and for tensors that are not contiguous or reach beyond their record or the file.
class TorchFile final : public TensorFile {
 public:
  explicit TorchFile(const std::string& path);
};

}  // namespace collimate::model
