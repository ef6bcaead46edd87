#pragma once

#include <cstdint>
#include <functional>

#include "collimate/host/core_pool.h"
#include "collimate/tensor/device.h"

namespace collimate::tensor {

// An Exec says where an operation runs: the device whose memory it reads and writes, the queue of that device which it
// joins, and the host's threads it may use. A value, cheap to copy; what it points to must outlive every call. Results
// never depend on the pool, its number of threads or the queue.
struct Exec {
  host::CorePool* pool = nullptr;  // null: the caller's thread alone
  const Device* device = &default_device();
  Stream* stream = nullptr;  // null: the device's first; the CPU has no other

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
