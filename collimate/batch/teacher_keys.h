#pragma once

#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/key.h"

// A teacher says this of each trainable token t of a row, in their order: its distribution of the token at t, as the
// log-probs of its K most likely tokens and that of all others together. K is the column's inner size.
namespace collimate::batch {

inline const Key<int32_t> kTeacherIds{.name = "teacher_ids", .ragged = true};           // [tokens, K] ascending
inline const Key<float> kTeacherLogProbs{.name = "teacher_log_probs", .ragged = true};  // [tokens, K]
inline const Key<float> kTeacherRest{.name = "teacher_rest", .ragged = true};           // [tokens]

// Gives a key of those two with its K.
template <class T>
Key<T> of_width(Key<T> key, int64_t width) {
  key.inner = {width};
  return key;
}

// One behind the other, of rows that each have a number for each of their trainable tokens, or K: [M] or [M, K].
// InputError where a row has others.
template <class T>
std::vector<T> of_trained_tokens(const Batch& rows, const Key<T>& key);

}  // namespace collimate::batch
