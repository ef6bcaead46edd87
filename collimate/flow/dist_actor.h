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

// One replica over its ordered ranks, as a pure value: what each rank is given and from which ranks results are taken.
// The mesh's axes are dp, cp, pp, tp (tp fastest), so that a worker has the same part of a model whatever dp and cp its
// functions have; its ranks are workers.
class DistActor {
 public:
  // `workers` in the replica's order; their number is dp·cp·pp·tp with the layout's dp, or dp = the rest when that is
  // 0.
  DistActor(const graph::FunctionSpec& spec, const graph::Layout& layout, std::vector<int> workers);

  const comm::Mesh& mesh() const { return mesh_; }
  const std::vector<int>& workers() const { return mesh_.ranks(); }
  // The rows of each rank, in the order of workers(): split over dp in near-equal runs of whole units (a unit is
  // `group_size` rows for granularity group, else one row), repeated over tp, cp and pp. Broadcast: all rows to each;
  // whole: all rows to dp rank 0, none to the others.
  std::vector<Batch> split(const Batch& rows, int64_t group_size) const;
  // Splits an optimizer update, whose rows may be in any order: rows of a prompt stay side by side and a unit of
  // `unit` rows together, and the ranks have as equal a number of tokens as runs of such units allow.
  std::vector<Batch> split_update(const Batch& rows, int64_t unit) const;
  // Indices into workers() that speak for their dp rank, in dp order: tp 0, cp 0, last pp. Their metrics count.
  const std::vector<int>& reporting() const { return reporting_; }
  // Indices into workers() whose results count, in dp order: tp 0, cp 0, last pp. One for Collect::kFirst, none for
  // kNone.
  const std::vector<int>& collecting() const { return collecting_; }
  // The results of the ranks as one batch; parts are in the order of collecting().
  Batch collect(std::span<const Batch> parts) const;

 private:
  graph::Granularity granularity_;
  graph::Dispatch dispatch_;
  comm::Mesh mesh_;
  std::vector<int> reporting_;
  std::vector<int> collecting_;
};

// By function of a model that is on devices: the mesh of the replica that has this worker. Nothing of those of which
// none has it.
std::map<std::string, comm::Mesh> meshes_of(const graph::Graph& graph, const graph::Placement& placement,
                                            const std::string& model, int worker);

}  // namespace collimate::flow
