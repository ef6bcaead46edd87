#pragma once

#include <cstdint>

namespace collimate::shape {

// The softmax of a row of logits sums the vocabulary in so many chunks, whose sums a balanced tree adds.
constexpr int kVocabChunks = 8;
// Returns the width of a chunk: a multiple of 16, so that boundaries of chunks are boundaries of vectors.
constexpr int64_t vocab_chunk(int64_t vocab) { return ((vocab + kVocabChunks - 1) / kVocabChunks + 15) / 16 * 16; }

}  // namespace collimate::shape
