#include "collimate/serve/stop_text.h"

#include <gtest/gtest.h>

#include "collimate/base/philox.h"

namespace collimate::serve {
namespace {

// The whole text in pieces of the given sizes, over and over; and whether a stop string was found.
std::pair<std::string, bool> cut(const std::vector<std::string>& stops, const std::string& text,
                                 const std::vector<size_t>& sizes) {
  StopText stop(stops);
  std::string out;
  for (size_t at = 0, i = 0; at < text.size(); at += sizes[i++ % sizes.size()]) {
    out += stop.push(text.substr(at, sizes[i % sizes.size()]));
  }
  const bool found = stop.found();
  if (!found) out += stop.finish();
  return {out, found};
}

TEST(StopText, CutsBeforeTheFirstOneHoweverThePiecesFall) {
  const std::vector<std::vector<size_t>> splits = {{1}, {2}, {3}, {1, 5, 2}, {100}};
  for (const auto& sizes : splits) {
    EXPECT_EQ(cut({"END"}, "a good EN ENDING", sizes), std::pair(std::string("a good EN "), true));
    EXPECT_EQ(cut({"aab"}, "aaaab", sizes), std::pair(std::string("aa"), true));
    EXPECT_EQ(cut({"abcd", "bc"}, "xabcd", sizes), std::pair(std::string("xa"), true));
    EXPECT_EQ(cut({"bc", "abc"}, "xabc", sizes), std::pair(std::string("x"), true));
    EXPECT_EQ(cut({"zz"}, "no such thing z", sizes), std::pair(std::string("no such thing z"), false));
    EXPECT_EQ(cut({}, "all of it", sizes), std::pair(std::string("all of it"), false));
  }
}

TEST(StopText, HoldsBackNoMoreThanTheBeginningOfAStopString) {
  StopText stop({"\n\nUser:"});
  EXPECT_EQ(stop.push("Hello\n"), "Hello");
  EXPECT_EQ(stop.push("\nU"), "");
  EXPECT_EQ(stop.push("nder"), "\n\nUnder");
  EXPECT_EQ(stop.push("\n\nUs"), "");
  EXPECT_EQ(stop.finish(), "\n\nUs");
}

TEST(StopText, SaysNothingAfterAStopString) {
  StopText stop({"."});
  EXPECT_EQ(stop.push("one. two"), "one");
  EXPECT_EQ(stop.push("three"), "");
  EXPECT_EQ(stop.finish(), "");
}

// Any split of random texts over two letters gives what the undivided text gives.
TEST(StopText, DoesNotDependOnTheSplit) {
  for (uint32_t run = 0; run < 300; ++run) {
    const auto bit = [&](uint32_t i) { return base::random_bits(7, 1, run, i) % 2 == 0 ? 'a' : 'b'; };
    std::string text, stop;
    for (uint32_t i = 0; i < 24; ++i) text += bit(i);
    for (uint32_t i = 0; i < 2 + run % 4; ++i) stop += bit(100 + i);
    const size_t at = text.find(stop);
    const std::string expected = text.substr(0, at);
    EXPECT_EQ(cut({stop}, text, {1 + run % 3, 1, 2}), std::pair(expected, at != std::string::npos)) << text << stop;
  }
}

}  // namespace
}  // namespace collimate::serve
