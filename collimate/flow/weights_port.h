#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"
#include "collimate/tensor/exec.h"

namespace collimate::flow {

// A WeightsPort is a module's weights as links see them: what this rank keeps of each parameter of the whole model, and
// a version. Two ports on one device whose `identity` is equal are aliases of the same memory. Not thread-safe; it
// belongs to the worker's thread.
class WeightsPort {
 public:
  virtual ~WeightsPort() = default;
  virtual const void* identity() const = 0;
  virtual uint64_t version() const = 0;
  // Returns Σ hash(global index)·bits mod 2^64, which is the same under any layout. All ranks must call it.
  virtual uint64_t checksum() const = 0;
  // Returns the device of the values.
  virtual tensor::Exec exec() const = 0;
  // These return the shape of the whole model and its parameters, of which ranks have parts.
  virtual const shape::ModelShape& whole_shape() const = 0;
  virtual const std::vector<shape::ParamSpec>& whole_params() const = 0;
  // Says whether training changes that parameter, so that links carry it.
  virtual bool carries(int param) const = 0;
  // A Kept is the master values [begin, begin + values.size()) of what a rank has of a parameter, counted by its own
  // spec. They are on the device.
  struct Kept {
    const shape::ParamSpec* spec = nullptr;
    int64_t begin = 0;
    std::span<float> values;
    int64_t end() const { return begin + static_cast<int64_t>(values.size()); }
  };
  virtual Kept kept(int param) = 0;
  // Tells the port that the values are now those of `version`: packed copies become stale, and caches of older versions
  // are dropped. It is called after a transfer and, on an alias, after its other side trained.
  virtual void updated(uint64_t version) = 0;
};

}  // namespace collimate::flow
