#pragma once

#include <cstdint>
#include <string>

#include "collimate/base/words.h"
#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// A ContextKind says how ranks that share the tokens of a row attend to all of them. With kGather each rank gathers the
// keys and values of all tokens (Llama Team 2024, arXiv 2407.21783, 3.3.2). With kUlysses ranks exchange tokens for
// heads while a block attends, so that each has all tokens of some heads (Jacobs et al. 2023, arXiv 2309.14509).
enum class ContextKind { kGather, kUlysses };
constexpr auto words_of(ContextKind) { return base::Words<ContextKind, 2>{"cp_kind", {"gather", "ulysses"}}; }

// Returns whether so many ranks can each have some of these heads: they divide the query heads, and they divide the
// key-value heads or are a multiple of them.
bool divides_heads(int64_t heads, int64_t kv_heads, int ranks);
// Returns the attention over the heads that a context rank has while a block attends: rank r of R has the query heads
// from heads r / R on. Where there are fewer key-value heads than ranks it has one, which R / kv_heads neighbours
// share.
Attention context_heads(const Attention& of, int rank, int ranks);
// Throws InputError, which names `where`, unless so many ranks can each have some heads of every block of `mine`, the
// part of a model that tensor ranks have.
void require_context_heads(const ModelShape& mine, int ranks, const std::string& where);

}  // namespace collimate::shape
