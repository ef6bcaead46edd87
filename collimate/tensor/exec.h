#pragma once

#include <cstdint>
#include <functional>

#include "collimate/host/core_pool.h"
#include "collimate/tensor/device.h"

namespace collimate::tensor {

// Where an operation runs: the device whose memory it reads and writes, and the host's threads it may use. A value,
// cheap to copy; pool and device must outlive every call. Results never depend on the pool or its number of threads.
struct Exec {
  host::CorePool* pool = nullptr;  // null: the caller's thread alone
  const Device* device = &default_device();

  const Operations& operations() const { return device->operations(); }
  int threads() const { return pool == nullptr ? 1 : pool->threads(); }

  // body(begin, end) over disjoint ranges that cover [0, count); each begins at a multiple of `grain`. Blocks.
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) const {
    if (pool == nullptr || pool->threads() == 1 || count <= grain) {
      if (count > 0) body(0, count);
    } else {
      pool->parallel_for(count, grain, body);
    }
  }
};

}  // namespace collimate::tensor
