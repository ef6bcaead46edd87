#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "collimate/base/tensor_part.h"

namespace collimate::base {

// A Stateful writes itself into a StateWriter: small values as JSON and large ones as raw bytes, each under a name that
// is unique inside the writer.
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  virtual void json(const std::string& name, const nlohmann::json& value) = 0;
  virtual void bytes(const std::string& name, std::span<const std::byte> value) = 0;
  // Writes this rank's parts of tensors that may be divided among ranks. `array` says which numbers of the tensors
  // these are (weights, a moment of the optimizer); `piece` tells several calls for one array apart.
  virtual void tensors(const std::string& array, int piece, std::span<const TensorPart> parts,
                       std::span<const float> floats) = 0;
};

// A StateReader reads what a StateWriter wrote. Throws RunError naming the entry when it is absent or of another size.
class StateReader {
 public:
  virtual ~StateReader() = default;
  virtual bool has(const std::string& name) const = 0;
  virtual nlohmann::json json(const std::string& name) = 0;
  virtual size_t bytes_size(const std::string& name) = 0;
  virtual void bytes(const std::string& name, std::span<std::byte> out) = 0;
  // Reads parts of an array from what all ranks of any layout wrote. Floats between the parts stay as they are. Throws
  // InputError naming the tensor where it was written in another size, is incomplete, or has unlike values for one
  // place.
  virtual void tensors(const std::string& array, std::span<const TensorPart> parts, std::span<float> floats) = 0;
};

// A run's checkpoint is a list of Statefuls. After `load` of what `save` wrote, the object behaves as the saved one
// would.
class Stateful {
 public:
  virtual ~Stateful() = default;
  virtual void save(StateWriter& out) const = 0;
  virtual void load(StateReader& in) = 0;
};

}  // namespace collimate::base
