#include "collimate/base/memory_words.h"

#include <gtest/gtest.h>

namespace collimate::base {
namespace {

TEST(MemoryWords, SizesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(byte_size(512), "512 B");
  EXPECT_EQ(byte_size(1536), "1.5 KiB");
  EXPECT_EQ(byte_size(1010 * 1024.0), "1010 KiB") << "no power of ten";
  EXPECT_EQ(byte_size(123.4 * 1024 * 1024), "123 MiB");
  EXPECT_EQ(byte_size(3e12), "2.73 TiB");
}

TEST(MemoryWords, ItemsAreNamedAsAPersonKnowsThem) {
  EXPECT_EQ(memory_words("policy/gradient"), "policy: gradients");
  EXPECT_EQ(memory_words("kv_cache"), "keys and values (the KV cache)");
  EXPECT_EQ(memory_words("of one's own"), "of one's own");
}

TEST(MemoryWords, AListHasTheLargestItemsAndCountsTheOthers) {
  EXPECT_EQ(memory_text({{"scratch", 1024}, {"policy/values", 4096}}),
            "policy: weights 4 KiB, working memory of single operations 1 KiB");
  EXPECT_EQ(memory_text({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}}),
            "a 1 B, b 1 B, c 1 B, d 1 B, "
            "e 1 B, f 1 B")
      << "one item more is named as soon as counted";
  EXPECT_EQ(memory_text({{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}, {"g", 7}}),
            "g 7 B, f 6 B, e 5 B, d 4 B, c 3 B, 2 smaller items 3 B");
}

TEST(MemoryWords, WhereThereIsNoRoomTheLeastBudgetIsNamed) {
  EXPECT_EQ(no_room_message({.device = 1,
                             .budget_bytes = 2 << 20,
                             .items = {{"policy/values", (2 << 20) + 1}},
                             .when = " while policy runs",
                             .remedies = {"fewer rows"}}),
            "[memory of device 1] expected at most 2 MiB (run.memory_budget) while policy runs, got a plan of 2 MiB "
            "(policy: weights 2 MiB); try run.memory_budget: 3 or fewer rows");
}

}  // namespace
}  // namespace collimate::base
