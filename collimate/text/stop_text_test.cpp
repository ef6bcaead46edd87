#include "collimate/text/stop_text.h"

#include <gtest/gtest.h>

#include "collimate/base/philox.h"

namespace collimate::text {
namespace {

using Texts = std::vector<std::string>;

// Gives what comes out for the pieces, each push and the end on its own.
Texts outputs(const Texts& stops, const Texts& pieces) {
  StopText text(stops);
  Texts out;
  for (const std::string& piece : pieces) out.push_back(text.push(piece));
  out.push_back(text.finish());
  return out;
}

TEST(StopText, HoldsBackWhatAStopStringMayBeginWith) {
  EXPECT_EQ(outputs({"stop"}, {"a s", "to", "ne"}), (Texts{"a ", "", "stone", ""}));
  EXPECT_EQ(outputs({"stop"}, {"a s", "to", "p it"}), (Texts{"a ", "", "", ""}));
  EXPECT_EQ(outputs({"stop"}, {"st"}), (Texts{"", "st"}));
  EXPECT_EQ(outputs({}, {"a", "b"}), (Texts{"a", "b", ""}));
}

TEST(StopText, OverlappingBeginnings) {
  EXPECT_EQ(outputs({"aab"}, {"a", "a", "a", "b", "x"}), (Texts{"", "", "a", "", "", ""}));
  EXPECT_EQ(outputs({"abab"}, {"ababab"}), (Texts{"", ""}));
  EXPECT_EQ(outputs({"abac"}, {"ababac!"}), (Texts{"ab", ""}));
}

TEST(StopText, AtTheVeryBeginning) {
  StopText text({"\n\n"});
  EXPECT_EQ(text.push("\n\nmore"), "");
  EXPECT_TRUE(text.matched());
  EXPECT_EQ(text.push("even more"), "");
  EXPECT_EQ(text.finish(), "");
}

TEST(StopText, TheFirstToBeCompleteThenTheLongest) {
  EXPECT_EQ(outputs({"abcd", "bc"}, {"abcd"}), (Texts{"a", ""}));
  EXPECT_EQ(outputs({"b", "ab"}, {"xab"}), (Texts{"x", ""}));
  EXPECT_EQ(outputs({"ab", "b"}, {"xa", "b"}), (Texts{"x", "", ""}));
}

TEST(StopText, PiecesMayCutCharacters) {
  EXPECT_EQ(outputs({"é。"}, {"caf\xC3", "\xA9\xE3\x80", "\x82."}), (Texts{"caf", "", "", ""}));
  EXPECT_EQ(outputs({"é。"}, {"caf\xC3", "\xA9\xE3", "\x81\x82"}), (Texts{"caf", "", "éあ", ""}));
}

TEST(StopText, WhatMayNotStopIsOrdinaryTextThatAStopStringMayBeginIn) {
  StopText text({"aa"});
  EXPECT_EQ(text.push("aa", false), "a");
  EXPECT_FALSE(text.matched());
  EXPECT_EQ(text.push("a"), "");
  EXPECT_TRUE(text.matched());
}

// Finds by brute force what must be out after `text`, all of which has come, and whether a stop string has matched.
std::pair<std::string, bool> reference(const Texts& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  size_t held = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size(); ++n) {
      if (text.ends_with(stop.substr(0, n))) held = std::max(held, n);
    }
  }
  return {text.substr(0, text.size() - held), false};
}

TEST(StopText, RandomTextInRandomPiecesIsAsByBruteForce) {
  int matches = 0;
  for (uint32_t trial = 0; trial < 3000; ++trial) {
    uint32_t drawn = 0;
    const auto random = [&](uint64_t below) { return base::random_bits(trial, 1, 1, drawn++) % below; };
    const auto letters = [&](uint64_t most) {
      std::string text(1 + random(most), ' ');
      for (char& c : text) c = static_cast<char>('a' + random(2));
      return text;
    };
    Texts stops(1 + random(3));
    for (std::string& stop : stops) stop = letters(6);
    StopText text(stops);
    std::string in, out;
    for (int piece = 0; piece < 8; ++piece) {
      const std::string next = letters(4);
      out += text.push(next);
      in += next;
      const auto [certain, matched] = reference(stops, in);
      ASSERT_EQ(out, certain) << in;
      ASSERT_EQ(text.matched(), matched) << in;
    }
    matches += text.matched();
    out += text.finish();
    EXPECT_EQ(out, text.matched() ? reference(stops, in).first : in);
  }
  EXPECT_GT(matches, 1000);
  EXPECT_LT(matches, 2990);
}

}  // namespace
}  // namespace collimate::text
