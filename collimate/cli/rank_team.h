#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/comm/mesh.h"
#include "collimate/flow/line_groups.h"
#include "collimate/graph/placement.h"
#include "collimate/model/stage_ranks.h"

namespace collimate::cli {

// A RankPlace is one device of a verb's model, with the groups of ranks that share the model with it.
struct RankPlace {
  int rank = 0;
  int replica = 0;    // index of the replica, which has rows of its own
  bool leads = true;  // whether it is the first rank of its replica; all ranks of a replica give equal results
  bool ends = true;   // whether it is the first rank of its replica that has the model's head
  model::ModelRanks ranks = {};
  int threads = 1;

  // Returns a clock that all ranks of a replica must read together and that gives all of them the same time. Returns an
  // empty function for a replica of one rank, which may use any clock.
  std::function<double()> clock() const;
};

// A RankTeam is the devices of a verb: ranks of one model in a mesh over dp, pp and tp. Rank 0 works in the calling
// thread, each other rank in a thread of its own. They share the model through the same groups as a recipe's workers.
//   consumes  the work of one `run` after the other
//   waits for the next `run`; woken by run and by the destructor
class RankTeam : private base::Immovable {
 public:
  // Takes a layout whose dp is not 0.
  explicit RankTeam(const graph::Layout& layout);
  ~RankTeam();

  int size() const { return static_cast<int>(places_.size()); }
  int replicas() const { return layout_.dp; }
  const graph::Layout& layout() const { return layout_; }
  const RankPlace& place(int rank) const;

  // Calls `work` on all ranks at once and returns when all have ended. If it throws on a rank, the other ranks stop
  // waiting for that one, and run() throws the first cause; in a team of several ranks every later call then throws a
  // RunError with that cause.
  void run(const std::function<void(const RankPlace& place)>& work);
  // Throws comm::AbortedByPeer when a rank has failed. A rank that is busy with rows of its own calls it so that it
  // stops, too. Any thread may call it.
  void check() const;

 private:
  void join_groups(const comm::Mesh& mesh);
  void end();
  void live(int rank);
  void carry_out(int rank);
  void fail(int rank, const std::string& cause, bool own);
  RankPlace place_of(int rank, const comm::Mesh& mesh) const;

  const graph::Layout layout_;
  std::vector<RankPlace> places_;
  std::vector<flow::LineGroups> groups_;  // by rank

  mutable std::mutex mutex_;
  std::condition_variable begun_, ended_;
  const std::function<void(const RankPlace&)>* work_ = nullptr;
  int64_t round_ = 0;
  int busy_ = 0;  // ranks other than rank 0 that still work
  bool over_ = false;
  std::exception_ptr failure_;
  bool is_own_failure_ = false;  // false: failure_ is a consequence of another rank's failure
  std::string cause_;

  std::vector<std::thread> threads_;
};

}  // namespace collimate::cli
