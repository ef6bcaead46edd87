#pragma once

#include "collimate/tensor/device.h"
#include "collimate/tensor/operations.h"

namespace collimate::test {

// The CPU under another name, of which a test overrides what it watches.
class CpuLikeDevice : public tensor::Device {
 public:
  std::string_view name() const override { return "like the CPU"; }
  const tensor::Operations& operations() const override { return cpu_.operations(); }
  void* take(int64_t bytes) const override { return cpu_.take(bytes); }
  void give_back(void* block, bool keep) const noexcept override { cpu_.give_back(block, keep); }
  void* open(tensor::Stream* stream, void* bytes, int64_t count, bool write) const override {
    return cpu_.open(stream, bytes, count, write);
  }
  void close(tensor::Stream* stream, void* bytes, int64_t count, bool write, void* opened) const noexcept override {
    cpu_.close(stream, bytes, count, write, opened);
  }
  void follow(tensor::Stream* stream, const tensor::Pending& work, double deadline_seconds) const override {
    cpu_.follow(stream, work, deadline_seconds);
  }
  bool reads_host_memory() const override { return true; }

 private:
  const tensor::Device& cpu_ = tensor::cpu_device();
};

}  // namespace collimate::test
