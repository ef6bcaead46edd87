#include "collimate/tensor/ops/embedding.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {

void check_embedding_ids(const int32_t* ids, int64_t rows, int64_t entries) {
  for (int64_t r = 0; r < rows; ++r) {
    if (ids[r] < 0 || ids[r] >= entries) {
      throw base::InputError(base::expectation("embedding", "ids in [0, " + std::to_string(entries) + ")",
                                               std::to_string(ids[r]), "the tokenizer of this model"));
    }
  }
}

void cpu::embedding(const Exec& exec, const float* table, int64_t entries, int64_t width, const int32_t* ids,
                    int64_t rows, float* out, bool accumulate) {
  check_embedding_ids(ids, rows, entries);
  exec.parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* from = table + ids[r] * width;
      if (accumulate) {
        pointwise_kernels().add(from, width, out + r * width);
      } else {
        std::memcpy(out + r * width, from, static_cast<size_t>(width) * sizeof(float));
      }
    }
  });
  base::fault_rows("embedding", out, rows, width, width);
}

void cpu::embedding_backward(const Exec& exec, const float* dout, const int32_t* ids, int64_t rows, int64_t entries,
                             int64_t width, float* dtable) {
  check_embedding_ids(ids, rows, entries);
  constexpr int64_t kStrip = 64;  // columns of a task; one thread sums a whole column, rows ascending
  const int64_t strips = (width + kStrip - 1) / kStrip;
  exec.parallel_for(strips, row_grain(rows * kStrip), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kStrip;
    const int64_t count = std::min(width, end * kStrip) - first;
    for (int64_t r = 0; r < rows; ++r) {
      pointwise_kernels().add(dout + r * width + first, count, dtable + ids[r] * width + first);
    }
  });
}

void embedding(const Exec& exec, const float* table, int64_t entries, int64_t width, const int32_t* ids, int64_t rows,
               float* out, bool accumulate) {
  exec.operations().embedding(exec, table, entries, width, ids, rows, out, accumulate);
}

void embedding_backward(const Exec& exec, const float* dout, const int32_t* ids, int64_t rows, int64_t entries,
                        int64_t width, float* dtable) {
  exec.operations().embedding_backward(exec, dout, ids, rows, entries, width, dtable);
}

}  // namespace collimate::tensor
