#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::serve {

// Columns lay out two texts that arrive in pieces side by side, as rows of two columns. A row is given out as soon as
// neither of its halves can change any more, so that nothing ever has to be drawn again. Lines are broken at spaces
// where that is possible.
class Columns {
 public:
  // Takes the width of a whole row in characters of a terminal; one below 20 counts as 20.
  explicit Columns(int width);

  // Adds text to a side, 0 or 1, or finishes that side. Returns the rows that are now certain, each with its newline.
  std::string push(int side, std::string_view text);
  std::string finish(int side);

 private:
  struct Side {
    std::vector<std::string> lines;  // complete, not yet given out
    std::string last;                // unfinished
    bool finished = false;
  };

  void wrap(Side& side, std::string_view text) const;
  void break_line(Side& side) const;
  std::string take_rows();

  int half_;  // characters of one column
  std::array<Side, 2> sides_;
};

// Returns how many columns of a terminal a text takes.
int display_width(std::string_view text);

}  // namespace collimate::serve
