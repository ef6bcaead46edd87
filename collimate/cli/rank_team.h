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

// One device of a verb's model, and who shares the model with it.
struct RankPlace {
  int rank = 0;
  int replica = 0;    // of those that have rows of their own
  bool leads = true;  // the first rank of its replica, of which all ranks give the same
  bool ends = true;   // the first one of these that has the head
  model::ModelRanks ranks = {};
  int threads = 1;

  // A clock that all ranks of a replica read together and find alike; empty: one rank's is any.
  std::function<double()> clock() const;
};

// The devices of a verb: ranks of one model, in a mesh over dp, pp and tp, rank 0 in the thread that calls and each
// other one in a thread of its own. They share the model by the groups that a recipe's workers have.
//   consumes  the work of one `run` after the other
//   waits for the next one; woken by run and by the destructor
class RankTeam : private base::Immovable {
 public:
  // `layout`: dp is not 0.
  explicit RankTeam(const graph::Layout& layout);
  ~RankTeam();

  int size() const { return static_cast<int>(places_.size()); }
  int replicas() const { return layout_.dp; }
  const graph::Layout& layout() const { return layout_; }
  const RankPlace& place(int rank) const;

  // Calls `work` on all ranks at once and returns when all have ended. Where it throws on one of them, the others'
  // waits for it end at once, the first cause is thrown here, and by every later call as a RunError.
  void run(const std::function<void(const RankPlace& place)>& work);
  // Ends a rank that is busy with rows of its own after another one has failed: throws comm::AbortedByPeer. Any thread.
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
  int busy_ = 0;  // ranks beside the first
  bool over_ = false;
  std::exception_ptr failure_;
  bool is_own_failure_ = false;  // else it is what another rank's has caused
  std::string cause_;

  std::vector<std::thread> threads_;
};

}  // namespace collimate::cli
