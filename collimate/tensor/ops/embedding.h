#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// out [rows, width] = table[ids]; with accumulate out += (learned positions). InputError for an id outside [0,
// entries).
void embedding(const Exec& exec, const float* table, int64_t entries, int64_t width, const int32_t* ids, int64_t rows,
               float* out, bool accumulate = false);
// InputError for an id outside [0, entries).
void check_embedding_ids(const int32_t* ids, int64_t rows, int64_t entries);
// dtable[ids[t]] += dout[t], t ascending.
void embedding_backward(const Exec& exec, const float* dout, const int32_t* ids, int64_t rows, int64_t entries,
                        int64_t width, float* dtable);

}  // namespace collimate::tensor
