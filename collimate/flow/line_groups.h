#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/comm/mesh.h"

namespace collimate::flow {

// The line of ranks that hold the same pieces of a model's weights, where they differ along both dp and cp.
inline constexpr const char* kCopies = "copies";
// The ep neighbours among kCopies that share the experts of a mixture, and those that have the same ones as this
// worker.
inline constexpr const char* kExperts = "ep";
inline constexpr const char* kExpertCopies = "expert copies";

// A worker's place on its line of kCopies: by dp, then cp.
int copy_number(const comm::Mesh& mesh, int worker);

// The groups of one model on one worker: one for each line of more than one rank, of any axis of its functions' meshes
// of kCopies, kExperts and kExpertCopies. Lines with the same ranks share one. Used by the worker's thread alone.
class LineGroups {
 public:
  // Joins the group of `ranks`, of which this worker is the place-th; returns when all of them have.
  using Join = std::function<std::unique_ptr<comm::Group>(const std::vector<int>& ranks, int place)>;

  LineGroups() = default;
  LineGroups(LineGroups&&) = default;
  LineGroups& operator=(LineGroups&&) = default;
  // Aborts them: whoever still waits for this worker waits in vain.
  ~LineGroups();
  // `expert_ranks`: ep by function, 1 where it says none. Joins by function, then by axis, the lines that are no axis
  // last. Every worker of a run goes through its models in one order and
  // through each in this one, so that of all groups not yet complete the first in this order is one for which nobody
  // who is missing waits elsewhere.
  LineGroups(const std::map<std::string, comm::Mesh>& meshes, const std::map<std::string, int>& expert_ranks,
             int worker, const Join& join);

  // By function and axis; nothing of a line of one rank.
  const std::map<std::string, std::map<std::string, comm::Group*>>& lines() const { return lines_; }
  void beat();
  void abort(const std::string& cause);

 private:
  std::map<std::vector<int>, std::unique_ptr<comm::Group>> groups_;  // by ranks
  std::map<std::string, std::map<std::string, comm::Group*>> lines_;
};

}  // namespace collimate::flow
