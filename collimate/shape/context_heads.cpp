#include "collimate/shape/context_heads.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::shape {
namespace {

bool divides_heads_of(const ModelShape& mine, int ranks) {
  return std::all_of(mine.blocks.begin(), mine.blocks.end(), [ranks](const Block& block) {
    return divides_heads(block.attention.heads, block.attention.kv_heads, ranks);
  });
}

// Returns what to try in the place of so many ranks.
std::string other_ranks(const ModelShape& mine, int ranks) {
  for (int fewer = ranks - 1; fewer > 1; --fewer)
    if (divides_heads_of(mine, fewer)) return fmt::format("cp {}, or cp_kind: gather, which any cp goes with", fewer);
  return "cp_kind: gather, which any cp goes with";
}

}  // namespace

bool divides_heads(int64_t heads, int64_t kv_heads, int ranks) {
  return heads % ranks == 0 && (kv_heads % ranks == 0 || ranks % kv_heads == 0);
}

Attention context_heads(const Attention& of, int rank, int ranks) {
  COLLIMATE_CHECK(divides_heads(of.heads, of.kv_heads, ranks), "{} heads and {} key-value heads for {} ranks", of.heads,
                  of.kv_heads, ranks);
  Attention own = of;
  own.all_heads = of.all_heads > 0 ? of.all_heads : of.heads;
  own.heads = of.heads / ranks;
  own.kv_heads = std::max<int64_t>(1, of.kv_heads / ranks);
  own.first_head = of.first_head + rank * own.heads;
  return own;
}

void require_context_heads(const ModelShape& mine, int ranks, const std::string& where) {
  for (const Block& block : mine.blocks) {
    const Attention& a = block.attention;
    if (divides_heads(a.heads, a.kv_heads, ranks)) continue;
    const bool whole = a.all_heads == 0 || a.all_heads == a.heads;
    throw base::InputError(base::expectation(
        where,
        fmt::format("a cp that divides the {} query heads{}, and that divides the {} key-value heads or is a multiple "
                    "of them (cp_kind: ulysses)",
                    a.heads, whole ? "" : " of a tensor rank", a.kv_heads),
        fmt::format("cp {}", ranks), other_ranks(mine, ranks)));
  }
}

}  // namespace collimate::shape
