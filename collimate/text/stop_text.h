#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// Cuts a text that comes in pieces before the first stop string in it. The stop string that is complete first counts,
// and of those complete at the same byte the longest. The result does not depend on where the pieces end, which may be
// within a UTF-8 character. Takes time linear in the text for each stop string (Knuth, Morris and Pratt 1977).
class StopText {
 public:
  // None of the stop strings may be empty.
  explicit StopText(const std::vector<std::string>& stops);

  // Returns the text that is certain after `piece`: all but the longest end that a stop string may begin with; nothing
  // once a stop string has matched. Stop strings that become complete within a piece with `may_stop` false are ordinary
  // text.
  std::string push(std::string_view piece, bool may_stop = true);
  // Returns what was held back, as no more text comes; nothing once a stop string has matched.
  std::string finish();
  bool matched() const { return matched_; }

 private:
  struct Stop {
    std::string text;
    std::vector<size_t> border;  // [i]: longest proper prefix of text that also ends text[0, i]
    size_t length = 0;           // of the longest prefix that the text pushed so far ends with
    bool advance(char c);
  };

  // Returns the bytes of the longest stop string that `c` completes, else 0.
  size_t advance(char c);

  std::vector<Stop> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace collimate::text
