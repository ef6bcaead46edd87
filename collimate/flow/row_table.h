#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/graph/graph.h"

namespace collimate::flow {

// A RowTable holds the rows of one iteration by row number: the inputs (source kInputs) and what each node made.
// Batches are kept as they came and handed out as views.
class RowTable {
 public:
  static constexpr int kInputs = -1;

  void put(int source, std::span<const int64_t> numbers, const Batch& rows);
  // Returns the row numbers that the source has, ascending.
  std::vector<int64_t> numbers(int source) const;
  // Returns the columns that one source gave those rows. A missing row is a broken invariant.
  Batch rows_of(int source, std::span<const int64_t> numbers) const;
  // Returns the columns of several sources joined by row number. Later sources win; sources that gave nothing are left
  // out.
  Batch join(std::span<const int> sources, std::span<const int64_t> numbers) const;

  void save(base::StateWriter& out, const std::string& prefix) const;
  void load(base::StateReader& in, const std::string& prefix);

 private:
  struct Place {
    size_t piece = 0;
    int64_t row = 0;
  };
  struct Source {
    std::vector<Batch> pieces;
    std::map<int64_t, Place> places;
  };
  std::map<int, Source> sources_;
};

// Returns the sources whose columns a node's input has: the inputs, then every node that leads to it, producers first.
std::vector<int> input_sources(const graph::Graph& graph, int node);

}  // namespace collimate::flow
