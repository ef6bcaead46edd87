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
// to [rows, width] = the rows of from that a list of the host names.
void gather_rows(const Exec& exec, const float* from, int64_t width, std::span<const int32_t> rows, float* to);

// HeadsAt says where heads lie: channel c of head h in row r at data + r row + h head + c. With head 0 all have the
// same.
template <class Data>
struct HeadsAt {
  Data* data = nullptr;
  int64_t row = 0, head = 0;
};
struct HeadCount {
  int64_t rows = 0, heads = 0, width = 0;
};
// to = from, and to += from, heads in ascending order: `to` may be one for all of them.
void copy_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to);
void add_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to);

// The fingerprint depends on the bits of eight values spread from the first to the last: a sample, cheap enough for
// every use. An update of the whole array changes it; a change of single values mostly does not.
uint64_t fingerprint(const Exec& exec, const float* x, int64_t count);

}  // namespace collimate::tensor
