#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::serve {

// Two texts that arrive in pieces as rows of two columns: a row is given out as soon as neither of its halves can
// change any more, so that nothing ever has to be drawn again. Lines are broken at spaces where that is possible.
class Columns {
 public:
  // `width` in characters of a terminal, of a whole row; at least 20.
  explicit Columns(int width);

  // Adds to a side, 0 or 1: the rows that are now certain, each with its newline.
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

// Columns of a terminal that a text takes.
int display_width(std::string_view text);

}  // namespace collimate::serve
