#include "collimate/tensor/counting_device.h"

#include <stdexcept>

#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

template <auto Function>
struct Nothing;
template <class Result, class... Arguments, Result (*Function)(Arguments...)>
struct Nothing<Function> {
  static Result run(Arguments...) { return Result(); }
};

const Device& real(const Exec& exec) { return static_cast<const CountingDevice*>(exec.device)->of(); }

int64_t real_packed_bytes(const Exec& exec, int64_t n, int64_t k, ComputeType type, int reduction_chunks) {
  return packed_bytes({.device = &real(exec)}, n, k, type, reduction_chunks);
}
int64_t real_kv_block_floats(const Exec& exec, const KvLayout& layout) {
  return kv_block_floats({.device = &real(exec)}, layout);
}

}  // namespace

const Operations& CountingDevice::operations() const {
  static const Operations kOperations = [] {
#define COLLIMATE_NOTHING(name) .name = &Nothing<&tensor::name>::run,
    Operations all = {COLLIMATE_OPERATIONS(COLLIMATE_NOTHING)};
#undef COLLIMATE_NOTHING
    all.packed_bytes = real_packed_bytes;
    all.kv_block_floats = real_kv_block_floats;
    return all;
  }();
  return kOperations;
}

void* CountingDevice::take(int64_t) const { return reinterpret_cast<void*>(uintptr_t{1} << 40); }

void* CountingDevice::open(Stream*, void*, int64_t, bool) const {
  throw std::logic_error("the host looked into a counting device");
}

}  // namespace collimate::tensor
