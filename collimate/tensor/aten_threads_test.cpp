#include "collimate/tensor/aten_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace collimate::tensor {
namespace {

TEST(AtenThreads, TestsComputeWithOne) { EXPECT_EQ(at::get_num_threads(), 1); }

TEST(AtenThreads, AreAsManyAsBeforeAfterOneThread) {
  at::set_num_threads(2);
  {
    const OneAtenThread one;
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 2);
  use_one_aten_thread();
  EXPECT_EQ(at::get_num_threads(), 1);
}

}  // namespace
}  // namespace collimate::tensor
