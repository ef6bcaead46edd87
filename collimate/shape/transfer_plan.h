#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/tensor_part.h"
#include "collimate/shape/local.h"
#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"
#include "collimate/shape/share.h"

// A transfer plan says how a model's weights get from the ranks of one layout to those of another, without tensors or
// I/O. The runtime carries it out, and a planner counts its bytes.
namespace collimate::shape {

// A WeightRank is the part of a model's weights that one worker has.
struct WeightRank {
  int worker = 0;  // equal numbers on both sides are one device
  ModelRank place;
  ShareRank all;      // its share among the ranks with the same pieces
  ShareRank experts;  // for experts, where ranks share them: its share among the ranks with the same experts
  bool has_same(const WeightRank& other) const;
};

// A box is a part of a parameter of the whole model, which counts as a matrix with sizes[0] rows.
using base::Box;

// Returns the boxes that hold the local values [begin, end) of a rank's own parameter (shape::local); none where the
// rank has nothing of it.
std::vector<Box> boxes_of(const ParamSpec& mine, int64_t begin, int64_t end);

// Returns whether one piece of a rank's own parameter has all of a box.
bool has_box(const ParamSpec& mine, const Box& box);

// Calls visit(offset in the rank's own parameter, count) for the values of a box row by row, in runs that are adjacent
// there. has_box() must hold.
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

// A Slice is a part of a parameter that goes from one rank to another.
struct Slice {
  int param = 0;  // index of the parameter
  Box box;
  bool operator==(const Slice&) const = default;
};

// A Route is everything that goes from one worker to another.
struct Route {
  int source = 0;  // worker
  int destination = 0;
  std::vector<Slice> slices;
  int64_t floats() const;
};

struct TransferPlan {
  std::vector<Route> routes;  // sorted by source, then destination; each pair once
  int64_t floats() const;     // of all routes
  // Returns the floats that go to another device.
  int64_t moved_floats() const;
};

struct TransferRequest {
  const ModelShape& whole;
  const std::vector<ParamSpec>& params;  // of the whole model
  std::vector<WeightRank> sources, destinations;
};

// Returns a plan in which every value that a destination keeps is in one slice. The value comes from the destination's
// own device where a rank there has it, else from that rank with it which has given the least so far.
TransferPlan plan_transfer(const TransferRequest& request);

// Cuts the slices of a route by rows, in their order, into lists of at most so many floats each. A row that is longer
// is a list of its own.
std::vector<std::vector<Slice>> buckets_of(const std::vector<Slice>& slices, int64_t most_floats);

// Returns Σ hash(name, index) * bits mod 2^64 over the values of a box, row by row. An index counts in the whole
// parameter, whose rows are `width` long, so that the sums over all boxes of a parameter add up to the same number
// however it is cut.
uint64_t checksum_of(const std::string& name, int64_t width, const Box& box, std::span<const float> values);

}  // namespace collimate::shape
