#pragma once

#include "collimate/tensor/device.h"

namespace collimate::tensor {

// A CountingDevice stands for another device in plans of memory. It gives out addresses that may not be read or
// written, and its operations do nothing, except those that return how many bytes something takes. Code that takes
// memory from an arena on it takes as much as it would on that device. Nothing is allocated or counted.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(const Device& of) : of_(of) {}

  std::string_view name() const override { return "counting"; }
  const Operations& operations() const override;
  void* take(int64_t bytes) const override;
  void give_back(void*, bool) const noexcept override {}
  // Throws std::logic_error, because there are no bytes to read.
  void* open(Stream* stream, void* bytes, int64_t count, bool write) const override;
  void close(Stream*, void*, int64_t, bool, void*) const noexcept override {}
  void follow(Stream*, const Pending&, double) const override {}
  bool reads_host_memory() const override { return true; }

  const Device& of() const { return of_; }

 private:
  const Device& of_;
};

}  // namespace collimate::tensor
