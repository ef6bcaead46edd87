#pragma once

#include <cstdint>
#include <span>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// These operations move numbers within a device's memory, or between it and the host's. Ranges must not overlap.

void copy(const Exec& exec, const float* from, int64_t count, float* to);
void zero(const Exec& exec, int64_t count, float* x);
// copy_in() copies bytes from the host's memory to the device's, copy_out() back. The bytes have arrived on return.
void copy_in(const Exec& exec, const void* host, int64_t bytes, void* device);
void copy_out(const Exec& exec, const void* device, int64_t bytes, void* host);
// Copies to `to` [rows, width] the rows of `from` that are named in `rows`, a list in the host's memory.
void gather_rows(const Exec& exec, const float* from, int64_t width, std::span<const int32_t> rows, float* to);

// HeadsAt says where heads lie: channel c of head h in row r is at data + r * row + h * head + c. Where `head` is 0,
// all heads of a row are the same memory.
template <class Data>
struct HeadsAt {
  Data* data = nullptr;
  int64_t row = 0, head = 0;
};
struct HeadCount {
  int64_t rows = 0, heads = 0, width = 0;
};
// copy_heads() computes to = from, add_heads() to += from, both with heads in ascending order: `to` may be one head for
// all.
void copy_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to);
void add_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to);

// Returns a number made from the bits of eight values spread from the first to the last, cheap enough for every use;
// count is at least 1. An update of the whole array changes it, a change of single values mostly does not.
uint64_t fingerprint(const Exec& exec, const float* x, int64_t count);

}  // namespace collimate::tensor
