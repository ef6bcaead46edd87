#pragma once

#include <cstdint>
#include <functional>

#include "collimate/host/core_pool.h"
#include "collimate/tensor/device.h"

namespace collimate::tensor {

// An Exec says where an operation runs: on which device, whose memory it reads and writes; in which queue of that
// device; and with which threads of the host. It is a value and cheap to copy; the objects that it points to must
// outlive every call. Results never depend on the pool, its number of threads or the queue.
struct Exec {
  host::CorePool* pool = nullptr;  // null: only the caller's thread
  const Device* device = &default_device();
  Stream* stream = nullptr;  // null: the device's first queue; the CPU has no other

  const Operations& operations() const { return device->operations(); }
  int threads() const { return pool == nullptr ? 1 : pool->threads(); }

  // Calls body(begin, end) for disjoint ranges that cover [0, count), each beginning at a multiple of `grain`. Blocks
  // until all have ended.
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) const {
    if (pool == nullptr || pool->threads() == 1 || count <= grain) {
      if (count > 0) body(0, count);
    } else {
      pool->parallel_for(count, grain, body);
    }
  }
};

}  // namespace collimate::tensor
