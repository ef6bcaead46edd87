#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// Text that comes in pieces, cut before the first stop string in it. The stop string that is complete first counts, and
// of those complete at the same byte the longest: what comes out does not depend on where the pieces end, which may be
// within a UTF-8 character. Time linear in the text for each stop string (Knuth, Morris and Pratt 1977).
class StopText {
 public:
  // None of the stop strings may be empty.
  explicit StopText(const std::vector<std::string>& stops);

  // The text that is certain after `piece`: all but the longest end that a stop string may begin with. Nothing once one
  // has matched. Stop strings that are complete within a piece with `may_stop` false are ordinary text.
  std::string push(std::string_view piece, bool may_stop = true);
  // No more text comes: what was held back, nothing once a stop string has matched.
  std::string finish();
  bool matched() const { return matched_; }

 private:
  struct Stop {
    std::string text;
    std::vector<size_t> border;  // [i]: longest proper prefix of text that also ends text[0, i]
    size_t length = 0;           // of the longest prefix that the text so far ends with
    bool advance(char c);
  };

  // Bytes of the longest stop string that `c` completes, else 0.
  size_t advance(char c);

  std::vector<Stop> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace collimate::text
