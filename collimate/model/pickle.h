#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collimate::model {

// A tensor that a pickle names: where its numbers lie in a record of the file.
struct PickledTensor {
  std::string name;
  std::string dtype;   // as of TensorEntry
  std::string record;  // key of the storage
  int64_t offset = 0;  // elements of the storage ahead of it
  std::vector<int64_t> sizes, strides;
};

// The tensors of a state dict that torch.save wrote: a dictionary from names to tensors. Nothing is executed: of the
// pickle language (Python's pickletools) only what such a file needs is known, and of callables only those that make
// dictionaries, tensors and parameters, which are recognised by name. Takes memory in proportion to the text.
// InputError naming `where` for anything else.
std::vector<PickledTensor> read_pickled_tensors(std::span<const std::byte> text, const std::string& where);

}  // namespace collimate::model
