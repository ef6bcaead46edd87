#include "collimate/serve/channel.h"

#include <gtest/gtest.h>

#include <vector>

namespace collimate::serve {
namespace {

// A reader that comes late finds one piece, with each token's most likely ones in their places.
TEST(Channel, JoinsWhatCameBetweenTwoReads) {
  Channel channel(2, 100);
  channel.push(1, {.tokens = {5}, .log_probs = {-1.F}, .top_log_probs = {{5, -1.F}, {6, -2.F}}});
  channel.push(1, {.tokens = {7, 8},
                   .log_probs = {-3.F, -4.F},
                   .top_log_probs = {{9, -.5F}, {7, -3.F}, {8, -4.F}, {3, -5.F}},
                   .finish = generate::Finish::kLength});
  const std::vector<Piece> pieces = channel.take(base::Deadline::after(600));
  ASSERT_EQ(pieces.size(), 1U);
  const Piece& piece = pieces[0];
  EXPECT_EQ(piece.choice, 1);
  EXPECT_EQ(piece.tokens, (std::vector<int32_t>{5, 7, 8}));
  EXPECT_EQ(piece.finish, generate::Finish::kLength);
  std::vector<std::vector<int32_t>> top;
  for (size_t i = 0; i < 3; ++i) {
    top.emplace_back();
    for (const auto& one : generate::top_of(piece.top_log_probs, 3, i)) top.back().push_back(one.token);
  }
  EXPECT_EQ(top, (std::vector<std::vector<int32_t>>{{5, 6}, {9, 7}, {8, 3}}));
  EXPECT_EQ(piece.top_log_probs[2].log_prob, -.5F);
}

// A reader who takes what there is may be sent more than the buffer holds, in all.
TEST(Channel, WhatWasTakenDoesNotCount) {
  Channel channel(1, 3);
  const generate::Emission three{.tokens = {1, 2, 3}, .log_probs = {-1.F, -1.F, -1.F}};
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(channel.push(0, three));
    EXPECT_EQ(channel.take(base::Deadline::never()).at(0).tokens.size(), 3U);
  }
  EXPECT_TRUE(channel.push(0, three));
  EXPECT_FALSE(channel.push(0, three)) << "six unread";
}

TEST(Channel, WhatWasDroppedDoesNotCount) {
  Channel channel(2, 4);
  const generate::Emission three{.tokens = {1, 2, 3}, .log_probs = {-1.F, -1.F, -1.F}};
  EXPECT_TRUE(channel.push(0, three));
  channel.drop(0);
  channel.drop(0);
  EXPECT_TRUE(channel.push(0, three));
  EXPECT_TRUE(channel.push(1, three));
  EXPECT_EQ(channel.take(base::Deadline::never()).at(0).choice, 1);
}

}  // namespace
}  // namespace collimate::serve
