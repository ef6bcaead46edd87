#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/comm/mesh.h"
#include "collimate/graph/function_spec.h"
#include "collimate/graph/placement.h"

namespace collimate::flow {

// A DistActor is one replica over its ordered ranks, as a pure value: it says what rows each rank is given and from
// which ranks results are taken. The mesh's axes are dp, cp, pp, tp (tp fastest), so that a worker has the same part of
// a model whatever dp and cp its functions have; its ranks are workers.
class DistActor {
 public:
  // Takes `workers` in the replica's order. Their number is dp·cp·pp·tp with the layout's dp; where that is 0, dp
  // follows from their number.
  DistActor(const graph::FunctionSpec& spec, const graph::Layout& layout, std::vector<int> workers);

  const comm::Mesh& mesh() const { return mesh_; }
  const std::vector<int>& workers() const { return mesh_.ranks(); }
  // Returns the rows of each rank, in the order of workers(). Dispatch kSplit splits them over dp in near-equal runs of
  // whole units and repeats them over tp, cp and pp. A unit is one row or, for granularity group, the rows of one
  // sample group, however many of its `group_size` rows are left: those whose `numbers`, ascending in the iteration,
  // say so. kBroadcast gives all rows to each rank; kWhole gives all rows to dp rank 0 and none to the others.
  std::vector<Batch> split(const Batch& rows, std::span<const int64_t> numbers, int64_t group_size) const;
  // Splits an optimizer update, whose rows may be in any order. Rows of one prompt stay side by side, `unit` rows stay
  // together, and the numbers of tokens of the ranks (without tokens, of units) are as equal as runs of units allow.
  std::vector<Batch> split_update(const Batch& rows, int64_t unit) const;
  // Returns indices into workers() of the ranks that speak for their dp rank, in dp order: tp 0, cp 0, last pp. Only
  // their metrics count.
  const std::vector<int>& reporting() const { return reporting_; }
  // Returns indices into workers() of the ranks whose results count, in dp order: tp 0, cp 0, last pp. There is one for
  // Collect::kFirst or a dispatch other than kSplit, and none for kNone.
  const std::vector<int>& collecting() const { return collecting_; }
  // Returns the results of the ranks as one batch; `parts` are in the order of collecting().
  Batch collect(std::span<const Batch> parts) const;

 private:
  // Splits rows by units, of which `begins` has the first row of each and, last, the number of rows.
  std::vector<Batch> split_units(const Batch& rows, std::span<const int64_t> begins) const;

  graph::Granularity granularity_;
  graph::Dispatch dispatch_;
  comm::Mesh mesh_;
  std::vector<int> reporting_;
  std::vector<int> collecting_;
};

// Returns, by function of a model that is on devices, the mesh of the replica that has this worker. A function without
// such a replica has no entry.
std::map<std::string, comm::Mesh> meshes_of(const graph::Graph& graph, const graph::Placement& placement,
                                            const std::string& model, int worker);

}  // namespace collimate::flow
