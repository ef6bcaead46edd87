#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::tensor {

// While it lives, the host reads numbers of a device through a HostView, and changes them where T is not const. Where
// host and device share memory the view is the memory itself, else a copy, which is written back at the end. Movable.
template <class T>
class HostView {
 public:
  HostView() = default;
  HostView(const Exec& exec, T* values, int64_t count)
      : device_(exec.device), stream_(exec.stream), values_(values), count_(count) {
    if (count > 0) opened_ = static_cast<T*>(device_->open(stream_, raw(), bytes(), kWrite));
  }
  HostView(const Exec& exec, std::span<T> values)
      : HostView(exec, values.data(), static_cast<int64_t>(values.size())) {}
  HostView(HostView&& other) noexcept { *this = std::move(other); }
  HostView& operator=(HostView&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    std::swap(values_, other.values_);
    std::swap(count_, other.count_);
    std::swap(opened_, other.opened_);
    return *this;
  }
  ~HostView() {
    if (opened_ != nullptr)
      device_->close(stream_, raw(), bytes(), kWrite, const_cast<std::remove_const_t<T>*>(opened_));
  }

  T* data() const { return opened_; }
  size_t size() const { return static_cast<size_t>(count_); }
  bool empty() const { return count_ == 0; }
  T* begin() const { return opened_; }
  T* end() const { return opened_ + count_; }
  T& operator[](std::integral auto i) const { return opened_[i]; }
  std::span<T> span() const { return {opened_, size()}; }

 private:
  static constexpr bool kWrite = !std::is_const_v<T>;
  void* raw() const { return const_cast<std::remove_const_t<T>*>(values_); }
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }

  const Device* device_ = nullptr;
  Stream* stream_ = nullptr;
  T* values_ = nullptr;
  int64_t count_ = 0;
  T* opened_ = nullptr;
};
using HostRead = HostView<const float>;
using HostEdit = HostView<float>;

// While it lives, a device's operations can read numbers of the host through OnDevice. Where the device reads the
// host's memory, data() is the host's own numbers, which must not change meanwhile; else it is a copy on the device.
template <class T>
class OnDevice {
 public:
  OnDevice() = default;
  OnDevice(const Exec& exec, std::span<const T> values) : data_(values.data()) {
    if (exec.device->reads_host_memory() || values.empty()) return;
    copy_ = Buffer(static_cast<int64_t>(values.size_bytes()), *exec.device);
    copy_in(exec, values.data(), copy_.bytes(), copy_.data());
    data_ = static_cast<const T*>(copy_.data());
  }
  const T* data() const { return data_; }

 private:
  const T* data_ = nullptr;
  Buffer copy_;
};

}  // namespace collimate::tensor
