#pragma once

#include <cstdint>

namespace collimate::shape {

// The softmax of a row of logits sums the vocabulary in so many chunks, then over them in a balanced tree.
constexpr int kVocabChunks = 8;
// Width of a chunk: a multiple of 16, so that chunk boundaries are vector boundaries.
constexpr int64_t vocab_chunk(int64_t vocab) { return ((vocab + kVocabChunks - 1) / kVocabChunks + 15) / 16 * 16; }

}  // namespace collimate::shape
