#include "collimate/tensor/device.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "collimate/tensor/arena.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/rope.h"
#include "collimate/tensor/results.h"
#include "tests/support/base/error_of.h"
#include "tests/support/checked_device.h"

namespace collimate::tensor {
namespace {

const Exec kChecked{nullptr, &test::checked_device()};

TEST(CheckedDevice, OperationsAndViewsReachItsMemory) {
  const Buffer x(64, *kChecked.device), y(64, *kChecked.device);
  zero(kChecked, 16, y.floats());
  {
    const HostEdit values(kChecked, x.floats(), 16);
    for (float& value : values) value = 1.5F;
  }
  add(kChecked, x.floats(), 16, y.floats());
  add(kChecked, x.floats(), 16, y.floats());
  const HostRead sums(kChecked, y.floats(), 16);
  for (const float sum : sums) EXPECT_EQ(sum, 3.0F);
}

TEST(CheckedDevice, ViewsAreCopiesThatAreWrittenBack) {
  const Buffer x(64, *kChecked.device);
  zero(kChecked, 16, x.floats());
  {
    const HostEdit values(kChecked, x.floats(), 16);
    EXPECT_NE(values.data(), x.floats());
    values[3] = 2;
    EXPECT_EQ(HostRead(kChecked, x.floats(), 16)[3], 0);
  }
  EXPECT_EQ(HostRead(kChecked, x.floats(), 16)[3], 2);
}

TEST(CheckedDevice, OperationsTakeNoMemoryOfTheHost) {
  const Buffer y(64, *kChecked.device);
  zero(kChecked, 16, y.floats());
  const std::vector<float> numbers(16, 1.5F);
  EXPECT_EQ(base::message_of<std::logic_error>([&] { add(kChecked, numbers.data(), 16, y.floats()); }),
            "checked device: add was given memory of the host");
  RopeTable table{numbers.data(), y.floats(), 1, 2};
  EXPECT_THROW(rope(kChecked, y.floats(), 2, 1, 1, 2, nullptr, table), std::logic_error) << "in a struct";
  add(kChecked, OnDevice<float>(kChecked, numbers).data(), 16, y.floats());
  EXPECT_EQ(HostRead(kChecked, y.floats(), 16)[15], 1.5F);
}

TEST(CheckedDevice, TheHostDoesNot) {
  const Buffer x(64, *kChecked.device);
  zero(kChecked, 16, x.floats());
  EXPECT_DEATH(x.floats()[3] = 1, "touched a device's memory outside an operation");
  EXPECT_DEATH({ [[maybe_unused]] volatile float read = x.floats()[3]; }, "outside an operation");
  Arena arena(*kChecked.device);
  float* piece = arena.take(10);
  EXPECT_DEATH(piece[0] = 1, "outside an operation");
  *static_cast<int*>(arena.take_host(sizeof(int))) = 1;  // the host's part
}

TEST(CheckedDevice, ResultsLieOnItForOperationsOfBothKinds) {
  const at::Tensor result = empty_result(kChecked, {2, 3});
  zero(kChecked, 6, device_data(result));
  EXPECT_DEATH(result.data_ptr<float>()[0] = 1, "outside an operation");
  EXPECT_EQ((result + 1).sum().item<float>(), 6);
  const HostTensor numbers(kChecked, result.add_(2));
  EXPECT_EQ(numbers.floats()[5], 2);
  EXPECT_EQ(empty_result(kChecked, {0, 3}).numel(), 0);
}

TEST(CheckedDevice, WhatAtenMakesOfItsTensorsLiesOnItToo) {
  const at::Tensor result = empty_result(kChecked, {2}).zero_();
  const at::Tensor more = result + 1;
  EXPECT_DEATH(more.data_ptr<float>()[0] = 1, "outside an operation");
  const std::vector<float> numbers = {1, 2};
  const HostTensor sum(kChecked, more + tensor_beside(result, numbers));
  EXPECT_EQ(sum.floats()[1], 3);
  at::Tensor here = at::empty({2});
  EXPECT_EQ(here.copy_(more).data_ptr<float>()[1], 1);
}

TEST(TensorBeside, LiesWhereTheOtherDoes) {
  const std::vector<float> numbers = {1, 2};
  const std::vector<int64_t> indices = {1, 0};
  const at::Tensor host = at::tensor(numbers);
  EXPECT_TRUE(at::equal(tensor_beside(host, numbers), host));
  EXPECT_TRUE(at::equal(tensor_beside({}, indices), at::tensor(indices)));
  EXPECT_EQ(tensor_beside(host.to(at::kMeta), indices).device(), at::kMeta);
}

TEST(CheckedDevice, ItsMemoryIsCountedAsTheCpusIs) {
  const int64_t before = memory_used(memory_worker());
  int64_t held = 0;
  {
    const Buffer block(100000);
    held = memory_used(memory_worker()) - before;
  }
  const Buffer block(100000, *kChecked.device);
  EXPECT_EQ(memory_used(memory_worker()) - before, held);
}

TEST(HostView, MovesWithoutClosingTwice) {
  const Buffer x(64, *kChecked.device);
  HostEdit outer;
  {
    HostEdit inner(kChecked, x.floats(), 16);
    outer = std::move(inner);
  }
  outer[15] = 2;
  EXPECT_EQ(outer[15], 2);
  EXPECT_TRUE(HostRead(kChecked, nullptr, 0).empty());
}

}  // namespace
}  // namespace collimate::tensor
