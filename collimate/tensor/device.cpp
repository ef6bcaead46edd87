#include "collimate/tensor/device.h"

#include <utility>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/operation_times.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/pending.h"

namespace collimate::tensor {
namespace {

// Each operation's place in the list of operations.
enum class Place : size_t {
#define COLLIMATE_PLACE(name) name,
  COLLIMATE_OPERATIONS(COLLIMATE_PLACE)
#undef COLLIMATE_PLACE
};

// Timed wraps an operation of the CPU for a thread that times its operations.
template <Place place, auto Function>
struct Timed;
template <Place place, class Result, class... Arguments, Result (*Function)(Arguments...)>
struct Timed<place, Function> {
  static Result run(Arguments... arguments) {
    const OperationTimer timer(static_cast<size_t>(place));
    return Function(std::forward<Arguments>(arguments)...);
  }
};

class Cpu final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  const Operations& operations() const override {
#define COLLIMATE_CPU(name) .name = cpu::name,
    static constexpr Operations kOperations = {COLLIMATE_OPERATIONS(COLLIMATE_CPU)};
#undef COLLIMATE_CPU
#define COLLIMATE_TIMED(name) .name = &Timed<Place::name, &cpu::name>::run,
    static constexpr Operations kTimed = {COLLIMATE_OPERATIONS(COLLIMATE_TIMED)};
#undef COLLIMATE_TIMED
    return OperationTimes::current() == nullptr ? kOperations : kTimed;
  }
  void* take(int64_t bytes) const override { return allocate(bytes); }
  void give_back(void* block, bool keep) const noexcept override { keep ? deallocate(block) : discard(block); }
  void* open(Stream*, void* bytes, int64_t, bool) const override { return bytes; }
  void close(Stream*, void*, int64_t, bool, void*) const noexcept override {}
  void follow(Stream*, const Pending& work, double deadline_seconds) const override { work.wait(deadline_seconds); }
  bool reads_host_memory() const override { return true; }
};

}  // namespace

const Device& cpu_device() {
  static const auto* device = new Cpu;  // outlives every buffer
  return *device;
}

}  // namespace collimate::tensor
