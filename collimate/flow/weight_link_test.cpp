#include "collimate/flow/weight_link.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/host_access.h"
#include "tests/support/checked_device.h"

namespace collimate::flow {
namespace {

// Numbers on the checked device, in one segment. The host sees them by `values` alone.
class FlatPort : public WeightsPort {
 public:
  explicit FlatPort(const std::vector<float>& values)
      : buffer_(static_cast<int64_t>(values.size() * sizeof(float)), *exec().device), count_(values.size()) {
    const tensor::HostEdit view(exec(), span());
    std::copy(values.begin(), values.end(), view.begin());
  }
  const void* identity() const override { return buffer_.data(); }
  uint64_t version() const override { return version_; }
  uint64_t checksum() const override {
    uint64_t sum = broken_ ? 1 : 0;
    for (float value : values()) sum += static_cast<uint64_t>(value);
    return sum;
  }
  tensor::Exec exec() const override { return {nullptr, &test::checked_device()}; }
  std::vector<std::span<float>> segments() override { return {span()}; }
  void updated(uint64_t version) override { version_ = version; }

  std::vector<float> values() const {
    const tensor::HostRead view(exec(), span());
    return {view.begin(), view.end()};
  }

  uint64_t version_ = 0;
  bool broken_ = false;

 private:
  std::span<float> span() const { return {buffer_.floats(), count_}; }

  tensor::Buffer buffer_;
  size_t count_;
};

TEST(WeightLink, AliasCopiesNothingAndCopyIsChecked) {
  FlatPort source({1, 2, 3});
  source.version_ = 7;
  EXPECT_EQ(transfer_here("a -> a", source, source), 0);
  FlatPort other({0, 0, 0});
  EXPECT_EQ(transfer_here("a -> b", source, other), 12);
  EXPECT_EQ(other.values(), source.values());
  EXPECT_EQ(other.version(), 7U);
  other.broken_ = true;
  EXPECT_THROW(transfer_here("a -> b", source, other), base::GuardError);
  FlatPort small({0});
  EXPECT_THROW(transfer_here("a -> c", source, small), base::GuardError);
  EXPECT_THROW(import_weights("a -> c", export_weights(source), small), base::GuardError);
}

TEST(WeightLink, BothHalvesTogetherCarryTheNumbers) {
  FlatPort source({1, 2, 3}), other({0, 0, 0});
  source.version_ = 7;
  EXPECT_EQ(import_weights("a -> b", export_weights(source), other), 12);
  EXPECT_EQ(other.values(), source.values());
  EXPECT_EQ(other.version(), 7U);
}

}  // namespace
}  // namespace collimate::flow
