#include "collimate/shape/context_heads.h"

#include <gtest/gtest.h>

#include "collimate/shape/local.h"
#include "tests/support/base/error_of.h"

namespace collimate::shape {
namespace {

Attention grouped(int64_t heads, int64_t kv_heads) { return {.heads = heads, .kv_heads = kv_heads, .head_dim = 8}; }

ModelShape model_of(const Attention& attention) {
  ModelShape shape;
  shape.blocks.resize(2);
  for (Block& block : shape.blocks) block.attention = attention;
  return shape;
}

// Every rank has as many query heads as any other, each beside the key-value head that it reads.
TEST(ContextHeads, EachQueryHeadIsOfOneRankBesideItsKeys) {
  for (const auto& [heads, kv_heads] : {std::pair(8, 8), std::pair(8, 4), std::pair(8, 2), std::pair(8, 1)})
    for (const int ranks : {1, 2, 4, 8}) {
      const Attention whole = grouped(heads, kv_heads);
      ASSERT_TRUE(divides_heads(heads, kv_heads, ranks));
      const int64_t sharers = std::max(1, ranks / kv_heads);
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Attention own = context_heads(whole, rank, ranks);
        EXPECT_EQ(own.first_head, next);
        EXPECT_EQ(own.all_heads, heads);
        EXPECT_EQ(own.kv_heads * ranks, kv_heads * sharers);
        const int64_t first_kv = rank / sharers * own.kv_heads;
        for (int64_t head = 0; head < own.heads; ++head)
          EXPECT_EQ((next + head) / (heads / kv_heads), first_kv + head / (own.heads / own.kv_heads));
        next += own.heads;
      }
      EXPECT_EQ(next, heads);
    }
}

// Heads of a tensor rank are cut again.
TEST(ContextHeads, AreCountedAmongThoseOfTheModel) {
  Attention of_rank = grouped(4, 2);
  of_rank.all_heads = 8, of_rank.first_head = 4;
  const Attention own = context_heads(of_rank, 1, 2);
  EXPECT_EQ(own.first_head, 6);
  EXPECT_EQ(own.all_heads, 8);
}

TEST(ContextHeads, RanksThatCannotHaveHeadsAreRefused) {
  for (const auto& [heads, kv_heads, ranks] :
       {std::tuple(6, 2, 4), std::tuple(12, 4, 3), std::tuple(12, 4, 6), std::tuple(2, 2, 4)})
    EXPECT_FALSE(divides_heads(heads, kv_heads, ranks)) << heads << " " << kv_heads << " " << ranks;
  const auto error = [](const ModelShape& mine, int ranks) {
    return base::message_of([&] { require_context_heads(mine, ranks, "here"); });
  };
  EXPECT_EQ(error(model_of(grouped(6, 2)), 4),
            "[here] expected a cp that divides the 6 query heads, and that divides the 2 key-value heads or is a "
            "multiple of them (cp_kind: ulysses), got cp 4; try cp 2, or cp_kind: gather, which any cp goes with");
  EXPECT_EQ(error(model_of(grouped(3, 3)), 2),
            "[here] expected a cp that divides the 3 query heads, and that divides the 3 key-value heads or is a "
            "multiple of them (cp_kind: ulysses), got cp 2; try cp_kind: gather, which any cp goes with");
  Attention of_rank = grouped(2, 1);
  of_rank.all_heads = 4;
  EXPECT_TRUE(error(model_of(of_rank), 4).find("the 2 query heads of a tensor rank") != std::string::npos);
  require_context_heads(model_of(grouped(6, 2)), 2, "here");
}

}  // namespace
}  // namespace collimate::shape
