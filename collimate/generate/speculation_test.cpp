#include "collimate/generate/speculation.h"

#include <gtest/gtest.h>

namespace collimate::generate {
namespace {

// Rows of guesses that 320 steps run, when `held` tokens of each guess hold.
int64_t guessed_in_320_steps(int64_t most, int64_t held) {
  GuessLength length;
  int64_t rows = 0;
  for (int step = 0; step < 320; ++step) {
    const int64_t guess = length.next(most);
    if (guess == 0) continue;
    rows += guess;
    length.observe(guess, std::min(guess, held));
  }
  return rows;
}

TEST(GuessLength, FollowsWhatHolds) {
  EXPECT_GT(guessed_in_320_steps(8, 8), 310 * 8) << "all of it: the limit, soon";
  EXPECT_EQ(guessed_in_320_steps(8, 2), 4 + 319 * 3) << "two: three are tried";
  EXPECT_LT(guessed_in_320_steps(8, 0), 4 + 320 / 32 + 5) << "nothing: hardly any";
  EXPECT_GE(guessed_in_320_steps(8, 0), 4 + 320 / 32) << "but not none: a text may begin to repeat";
}

TEST(GuessLength, OneThatHoldsAfterAPauseEndsThePauses) {
  GuessLength length;
  for (int failure = 0; failure < 4; ++failure) {
    while (length.next(8) == 0) {
    }
    length.observe(1, 0);
  }
  int paused = 0;
  while (length.next(8) == 0) ++paused;
  EXPECT_EQ(paused, 15);
  length.observe(1, 1);
  EXPECT_EQ(length.next(8), 2);
  length.observe(2, 2);
  EXPECT_EQ(length.next(8), 4);
  EXPECT_EQ(length.next(3), 3) << "the caller's limit";
}

}  // namespace
}  // namespace collimate::generate
