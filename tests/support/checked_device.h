#pragma once

#include "collimate/tensor/device.h"

namespace collimate::test {

// The CPU's operations on memory of their own, which the host cannot touch but in an operation, ATen's included, or
// while a HostView lives: whoever does ends the program by SIGSEGV, with a line that says so. Bits are the CPU's. A
// program that links this computes on it from the start where COLLIMATE_TEST_DEVICE=checked is set.
const tensor::Device& checked_device();

}  // namespace collimate::test
