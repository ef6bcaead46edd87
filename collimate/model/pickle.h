#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace collimate::model {

// Says of a tensor that a pickle names where its numbers lie in a record of the file.
struct PickledTensor {
  std::string name;
  std::string dtype;   // as in TensorEntry
  std::string record;  // key of the storage
  int64_t offset = 0;  // elements of the storage ahead of it
  std::vector<int64_t> sizes, strides;
};

// Returns the tensors of a state dict that torch.save wrote: a dictionary from names to tensors. Executes nothing: it
// knows only the operations of the pickle language (Python's pickletools) that such a file needs, and only the
// callables that make dictionaries, tensors and parameters, by their names. Takes memory in proportion to the text.
// Throws InputError naming `where` for anything else.
std::vector<PickledTensor> read_pickled_tensors(std::span<const std::byte> text, const std::string& where);

}  // namespace collimate::model
