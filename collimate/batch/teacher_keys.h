#pragma once

#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/key.h"

// These columns hold, for each trainable token t of a row in order, a teacher's distribution of the token at t: the
// log-probs of its K most likely tokens, and the log-prob of all other tokens together. K is the column's inner size.
namespace collimate::batch {

inline const Key<int32_t> kTeacherIds{.name = "teacher_ids", .ragged = true};           // [tokens, K] ascending
inline const Key<float> kTeacherLogProbs{.name = "teacher_log_probs", .ragged = true};  // [tokens, K]
inline const Key<float> kTeacherRest{.name = "teacher_rest", .ragged = true};           // [tokens]

// Returns such a key with its K, `width`, set.
template <class T>
Key<T> of_width(Key<T> key, int64_t width) {
  key.inner = {width};
  return key;
}

// Returns all rows' numbers of such a column, one row behind the other: [M] or [M, K] for M trainable tokens in all.
// Throws InputError when a row does not have one number, or K, for each of its trainable tokens.
template <class T>
std::vector<T> of_trained_tokens(const Batch& rows, const Key<T>& key);

}  // namespace collimate::batch
