#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Computes out [rows, width] = table[ids], or with `accumulate` out += table[ids], as for learned positions. Throws
// InputError for an id outside [0, entries).
void embedding(const Exec& exec, const float* table, int64_t entries, int64_t width, const int32_t* ids, int64_t rows,
               float* out, bool accumulate = false);
// Throws InputError for an id outside [0, entries).
void check_embedding_ids(const int32_t* ids, int64_t rows, int64_t entries);
// Computes dtable[ids[t]] += dout[t], in ascending order of t.
void embedding_backward(const Exec& exec, const float* dout, const int32_t* ids, int64_t rows, int64_t entries,
                        int64_t width, float* dtable);

}  // namespace collimate::tensor
