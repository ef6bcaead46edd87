#include "collimate/generate/block_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "collimate/base/philox.h"

namespace collimate::generate {
namespace {

TEST(BlockPool, CopiesCountAndTheLastOneFrees) {
  BlockPool pool(3);
  {
    Block first = pool.allocate();
    Block second = pool.allocate();
    EXPECT_NE(first.id(), second.id());
    const Block copy = first;
    EXPECT_EQ(pool.holders(first.id()), 2);
    EXPECT_EQ(pool.used(), 2);
    first = second;
    EXPECT_EQ(pool.holders(copy.id()), 1);
    EXPECT_EQ(pool.holders(second.id()), 2);
    const Block moved = std::move(second);
    EXPECT_EQ(pool.holders(moved.id()), 2);
  }
  EXPECT_EQ(pool.used(), 0);
  EXPECT_EQ(pool.peak(), 2);
}

TEST(BlockPool, AllocatesTheLongestFreeAndKeepsContentUntilThen) {
  BlockPool pool(2);
  std::optional<Block> a = pool.allocate();
  std::optional<Block> b = pool.allocate();
  const int32_t first = a->id(), second = b->id();
  const uint64_t generation = pool.generation(second);
  b.reset();
  a.reset();  // free in the order b, a
  const Block revived = pool.acquire(second);
  EXPECT_EQ(pool.generation(second), generation);
  const Block next = pool.allocate();
  EXPECT_EQ(next.id(), first);
  EXPECT_EQ(pool.free(), 0);
  EXPECT_THROW(pool.allocate(), std::logic_error);
  EXPECT_EQ(pool.holders(revived.id()), 1);
}

TEST(BlockPool, RandomUseBalances) {
  BlockPool pool(17);
  std::vector<Block> held;
  for (uint32_t step = 0; step < 2000; ++step) {
    const uint64_t bits = base::random_bits(1, 2, 3, step);
    if (bits % 3 == 0 && !held.empty()) {
      held.erase(held.begin() + static_cast<int64_t>((bits >> 8) % held.size()));
    } else if (bits % 3 == 1 && pool.free() > 0) {
      held.push_back(pool.allocate());
      EXPECT_EQ(pool.holders(held.back().id()), 1);
    } else if (held.size() < 60) {
      held.push_back(pool.acquire(static_cast<int32_t>((bits >> 8) % 17)));
    }
    std::vector<int> counted(17, 0);
    for (const Block& block : held) ++counted[block.id()];
    int used = 0;
    for (int32_t id = 0; id < 17; ++id) {
      ASSERT_EQ(pool.holders(id), counted[id]);
      used += counted[id] > 0;
    }
    ASSERT_EQ(pool.used(), used);
  }
}

TEST(BlockPoolDeathTest, LeakEndsTheProcess) {
  EXPECT_DEATH(
      {
        auto pool = std::make_unique<BlockPool>(4);
        auto* leaked = new Block(pool->allocate());
        pool.reset();
        delete leaked;
      },
      "");
}

}  // namespace
}  // namespace collimate::generate
