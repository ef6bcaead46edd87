#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/comm/mesh.h"

namespace collimate::flow {

// This names the line of ranks that hold the same pieces of a model's weights, where they differ along both dp and cp.
inline constexpr const char* kCopies = "copies";
// kExperts names the line of the ep neighbours among kCopies that share the experts of a mixture. kExpertCopies names
// the line of the ranks that have the same experts as this worker.
inline constexpr const char* kExperts = "ep";
inline constexpr const char* kExpertCopies = "expert copies";

// Returns a worker's place on its line of kCopies: ordered by dp, then cp.
int copy_number(const comm::Mesh& mesh, int worker);

// LineGroups holds the groups of one model on one worker: one for each line of more than one rank along an axis of its
// functions' meshes, kCopies, kExperts or kExpertCopies. Lines with the same ranks share one group. Only the worker's
// thread uses it.
class LineGroups {
 public:
  // Joins the group of `ranks`, in which this worker has index `place`. Returns when all of them have joined.
  using Join = std::function<std::unique_ptr<comm::Group>(const std::vector<int>& ranks, int place)>;

  LineGroups() = default;
  LineGroups(LineGroups&&) = default;
  LineGroups& operator=(LineGroups&&) = default;
  // Aborts the groups, because nobody should wait for this worker any more.
  ~LineGroups();
  // Joins the groups by function, then by axis, with the lines that are no axis last. `expert_ranks` is ep by function,
  // 1 for a function without an entry. Every worker of a run goes through its models, and through each model's lines,
  // in this one order. So of all incomplete groups the first in this order never lacks a rank that waits in another
  // group.
  LineGroups(const std::map<std::string, comm::Mesh>& meshes, const std::map<std::string, int>& expert_ranks,
             int worker, const Join& join);

  // Returns the groups by function and axis; a line of one rank has none.
  const std::map<std::string, std::map<std::string, comm::Group*>>& lines() const { return lines_; }
  void beat();
  void abort(const std::string& cause);

 private:
  std::map<std::vector<int>, std::unique_ptr<comm::Group>> groups_;  // by ranks
  std::map<std::string, std::map<std::string, comm::Group*>> lines_;
};

}  // namespace collimate::flow
