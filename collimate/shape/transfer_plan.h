#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/shape/local.h"
#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"
#include "collimate/shape/share.h"

// How a model's weights get from the ranks of one layout to those of another: no tensors, no I/O. The runtime carries a
// plan out, and a planner counts its bytes.
namespace collimate::shape {

// The part of a model's weights that one worker has.
struct WeightRank {
  int worker = 0;  // of both sides: equal numbers are one device
  ModelRank place;
  ShareRank all;      // of the ranks with the same pieces
  ShareRank experts;  // where ranks share experts: of those with the same ones, for these alone
  bool has_same(const WeightRank& other) const;
};

// A part of a parameter of the whole model, which is seen as a matrix of sizes[0] rows (a vector: of one column).
struct Box {
  int64_t row = 0, rows = 0;
  int64_t column = 0, columns = 0;
  int64_t count() const { return rows * columns; }
  auto operator<=>(const Box&) const = default;
};

// The boxes that hold the local values [begin, end) of a rank's own parameter (shape::local); none where it is absent.
std::vector<Box> boxes_of(const ParamSpec& mine, int64_t begin, int64_t end);

// Whether a rank's own parameter has all of a box in one of its pieces.
bool has_box(const ParamSpec& mine, const Box& box);

// visit(offset in the rank's own parameter, count) for the values of a box row by row, in runs that are adjacent there.
// has_box.
template <class Visit>
void for_each_run(const ParamSpec& mine, const Box& box, const Visit& visit) {
  int64_t row = box.row, column = box.column;
  if (mine.cut >= 0) {
    int64_t& at = mine.cut == 0 ? row : column;
    int64_t local = 0;
    for (const Piece& piece : mine.pieces) {
      if (at >= piece.first && at < piece.first + piece.count) {
        at += local - piece.first;
        break;
      }
      local += piece.count;
    }
  }
  const int64_t width = mine.count() / mine.sizes[0];
  if (box.columns == width) return visit(row * width, box.count());
  for (int64_t r = 0; r < box.rows; ++r) visit((row + r) * width + column, box.columns);
}

// A part of a parameter that goes from one rank to another.
struct Slice {
  int param = 0;  // index
  Box box;
  bool operator==(const Slice&) const = default;
};

// Everything that goes from one worker to another.
struct Route {
  int source = 0;  // workers
  int destination = 0;
  std::vector<Slice> slices;
  int64_t floats() const;
};

struct TransferPlan {
  std::vector<Route> routes;  // by source, then destination; each pair once
  int64_t floats() const;     // of all routes
  // The floats that change their device.
  int64_t moved_floats() const;
};

struct TransferRequest {
  const ModelShape& whole;
  const std::vector<ParamSpec>& params;  // of the whole model
  std::vector<WeightRank> sources, destinations;
};

// Every value that a destination keeps is in one slice. It comes from the destination's own device where that has it,
// else from the rank that has it and has given the least so far.
TransferPlan plan_transfer(const TransferRequest& request);

// The slices in the order of a route, cut by rows into lists of at most so many floats each (a row longer than that is
// a list of its own).
std::vector<std::vector<Slice>> buckets_of(const std::vector<Slice>& slices, int64_t most_floats);

// Σ hash(name, index)·bits mod 2^64 over the values of a box, row by row, by their index in the whole parameter, whose
// rows are so wide: sums over the boxes of a parameter, however it is cut, are equal.
uint64_t checksum_of(const std::string& name, int64_t width, const Box& box, std::span<const float> values);

}  // namespace collimate::shape
