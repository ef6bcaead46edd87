#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/tensor/exec.h"

namespace collimate::flow {

// A module's weights as links see them: flat fp32 segments and a version. Two ports on one device whose `identity` is
// equal are aliases of the same memory. Not thread-safe; belongs to the worker's thread.
class WeightsPort {
 public:
  virtual ~WeightsPort() = default;
  virtual const void* identity() const = 0;
  virtual uint64_t version() const = 0;
  // Σ hash(global index)·bits mod 2^64: the same under any layout.
  virtual uint64_t checksum() const = 0;
  // The device of the segments.
  virtual tensor::Exec exec() const = 0;
  // Master values on it, one range per segment that training changes, in segment order.
  virtual std::vector<std::span<float>> segments() = 0;
  // The values are now those of `version`: packed copies become stale, caches of older versions are dropped. Called
  // after a transfer and, on an alias, after its other side trained.
  virtual void updated(uint64_t version) = 0;
};

}  // namespace collimate::flow
