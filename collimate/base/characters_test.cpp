#include "collimate/base/characters.h"

#include <gtest/gtest.h>

namespace collimate::base {
namespace {

TEST(Characters, ABeginningHasWholeOnes) {
  EXPECT_EQ(beginning_of("abcdef", 6), "abcdef");
  EXPECT_EQ(beginning_of("abcdefg", 6), "abc...");
  EXPECT_EQ(beginning_of("aößöäü", 6), "aö...");
  EXPECT_EQ(beginning_of("aa€€€€", 6), "aa...") << "what would be cut is left out";
  EXPECT_EQ(beginning_of("€€€", 3), "...");
  EXPECT_EQ(beginning_of("abcdef", 2), "...");
}

}  // namespace
}  // namespace collimate::base
