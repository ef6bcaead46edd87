#include "collimate/tensor/ops/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collimate/base/at.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

// Calls move(a head's channels, their number, where they go) for each head of each row, the heads of a row in order.
template <class Move>
void for_each_head(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to,
                   const Move& move) {
  exec.parallel_for(count.rows, row_grain(count.heads * count.width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t h = 0; h < count.heads; ++h)
        move(from.data + r * from.row + h * from.head, count.width, to.data + r * to.row + h * to.head);
  });
}

}  // namespace

void cpu::copy(const Exec&, const float* from, int64_t count, float* to) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

void cpu::zero(const Exec&, int64_t count, float* x) {
  if (count > 0) std::memset(x, 0, static_cast<size_t>(count) * sizeof(float));
}

void cpu::copy_in(const Exec&, const void* host, int64_t bytes, void* device) {
  if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
}

void cpu::copy_out(const Exec&, const void* device, int64_t bytes, void* host) {
  if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
}

void cpu::gather_rows(const Exec& exec, const float* from, int64_t width, std::span<const int32_t> rows, float* to) {
  for (size_t r = 0; r < rows.size(); ++r)
    cpu::copy(exec, from + rows[r] * width, width, to + static_cast<int64_t>(r) * width);
}

void cpu::copy_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from,
                     const HeadsAt<float>& to) {
  for_each_head(exec, count, from, to, [](const float* x, int64_t width, float* y) { std::copy_n(x, width, y); });
}

void cpu::add_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from,
                    const HeadsAt<float>& to) {
  for_each_head(exec, count, from, to, [](const float* x, int64_t width, float* y) {
    for (int64_t i = 0; i < width; ++i) y[i] += x[i];
  });
}

uint64_t cpu::fingerprint(const Exec&, const float* x, int64_t count) {
  constexpr int64_t kSamples = 8;
  uint64_t sum = 0;
  for (int64_t i = 0; i < kSamples; ++i)
    sum = sum * 0x9e3779b97f4a7c15ULL + std::bit_cast<uint32_t>(x[i * (count - 1) / (kSamples - 1)]);
  return sum;
}

void copy(const Exec& exec, const float* from, int64_t count, float* to) {
  exec.operations().copy(exec, from, count, to);
}
void zero(const Exec& exec, int64_t count, float* x) { exec.operations().zero(exec, count, x); }
void copy_in(const Exec& exec, const void* host, int64_t bytes, void* device) {
  exec.operations().copy_in(exec, host, bytes, device);
}
void copy_out(const Exec& exec, const void* device, int64_t bytes, void* host) {
  exec.operations().copy_out(exec, device, bytes, host);
}
void gather_rows(const Exec& exec, const float* from, int64_t width, std::span<const int32_t> rows, float* to) {
  exec.operations().gather_rows(exec, from, width, rows, to);
}
void copy_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to) {
  exec.operations().copy_heads(exec, count, from, to);
}
void add_heads(const Exec& exec, const HeadCount& count, const HeadsAt<const float>& from, const HeadsAt<float>& to) {
  exec.operations().add_heads(exec, count, from, to);
}
uint64_t fingerprint(const Exec& exec, const float* x, int64_t count) {
  return exec.operations().fingerprint(exec, x, count);
}

}  // namespace collimate::tensor
