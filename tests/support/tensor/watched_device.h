#pragma once

#include "collimate/tensor/device.h"
#include "collimate/tensor/operations.h"

namespace collimate::test {

// The default device under another name, of which a test overrides what it watches.
class WatchedDevice : public tensor::Device {
 public:
  std::string_view name() const override { return "watched"; }
  const tensor::Operations& operations() const override { return device_.operations(); }
  void* take(int64_t bytes) const override { return device_.take(bytes); }
  void give_back(void* block, bool keep) const noexcept override { device_.give_back(block, keep); }
  void* open(tensor::Stream* stream, void* bytes, int64_t count, bool write) const override {
    return device_.open(stream, bytes, count, write);
  }
  void close(tensor::Stream* stream, void* bytes, int64_t count, bool write, void* opened) const noexcept override {
    device_.close(stream, bytes, count, write, opened);
  }
  void follow(tensor::Stream* stream, const tensor::Pending& work, double deadline_seconds) const override {
    device_.follow(stream, work, deadline_seconds);
  }
  bool reads_host_memory() const override { return device_.reads_host_memory(); }

 private:
  const tensor::Device& device_ = tensor::default_device();
};

}  // namespace collimate::test
