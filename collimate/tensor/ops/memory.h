#pragma once

#include <cstdint>
#include <span>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Moves what lies on a device. Ranges must not overlap.

void copy(const Exec& exec, const float* from, int64_t count, float* to);
void zero(const Exec& exec, int64_t count, float* x);
// Bytes from the host's memory to the device's, and back. They are there on return.
void copy_in(const Exec& exec, const void* host, int64_t bytes, void* device);
void copy_out(const Exec& exec, const void* device, int64_t bytes, void* host);
// to [rows, width] = the named rows of from.
void gather_rows(const Exec& exec, const float* from, int64_t width, std::span<const int32_t> rows, float* to);

// The fingerprint depends on the bits of eight values spread from the first to the last: a sample, cheap enough for
// every use. An update of the whole array changes it; a change of single values mostly does not.
uint64_t fingerprint(const Exec& exec, const float* x, int64_t count);

}  // namespace collimate::tensor
