#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collimate::serve {

// Cuts text that arrives in pieces before the first stop string, however the pieces fall: the string that is complete
// first wins, of those that end at one place the longest. Text that may be the beginning of one is held back.
class StopText {
 public:
  // No string may be empty.
  explicit StopText(std::vector<std::string> stops);

  // The text that is certain after `piece`; once a stop string was found, what stood before it, then nothing more.
  std::string push(std::string_view piece);
  // No more text comes: what was held back.
  std::string finish();
  bool found() const { return found_; }

 private:
  size_t held_length() const;

  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace collimate::serve
