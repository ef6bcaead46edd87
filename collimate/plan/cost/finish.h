#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace collimate::plan {

// A function gives out its rows in four parts: the first half of them, twice half of what is left, and the rest. These
// are 4, 2, 1 and 1 of every eight rows.
inline constexpr size_t kFinishParts = 4;
inline constexpr int64_t kFinishRows = 8;
inline constexpr std::array<double, kFinishParts> kPartRows = {0.5, 0.25, 0.125, 0.125};
// A Finish has by part, ascending, the seconds (or the share of them) from the function's begin to the part's end.
using Finish = std::array<double, kFinishParts>;

// Returns the Finish of a function whose parts all come at the end.
constexpr Finish at_the_end(double seconds) { return {seconds, seconds, seconds, seconds}; }
// Returns the part to which a row belongs, for a task whose rows are a multiple of eight.
constexpr size_t part_of_row(int64_t row) {
  const int64_t place = row % kFinishRows;
  return place < 4 ? 0 : (place < 6 ? 1 : static_cast<size_t>(place - 4));
}

}  // namespace collimate::plan
