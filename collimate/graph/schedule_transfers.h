#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/graph/schedule_facts.h"
#include "collimate/graph/schedule_workers.h"

namespace collimate::graph {

struct Transfer {
  int link = 0;
  int64_t version = 0;
  int worker = -1;  // of the destination; -1: all of its workers
  bool running = false;
  bool paused = false;       // the destination's service is paused
  std::vector<int> targets;  // destination workers that take part, once running
  bool early = false;        // waits for iterations that draw by older weights; computed anew before each use
  bool operator==(const Transfer&) const = default;

  COLLIMATE_FIELDS(link, version, worker, running, paused, targets)
};

// Transfers says which version of which weights is where, and which transfers are wanted or running. A transfer waits
// in two steps. While a task of the destination runs, only the destination's tasks and the source's training are kept
// from starting; that task is closed so that it ends by itself. Then all workers of both sides are kept free until the
// transfer has taken place. With update_in_flight a streaming task of the destination stays and is paused. Internal to
// schedule*.cpp.
class Transfers {
 public:
  explicit Transfers(std::shared_ptr<const ScheduleFacts> facts);

  bool empty() const { return transfers_.empty(); }
  bool all_early() const;                                          // true also when there are none
  const std::vector<Transfer>& all() const { return transfers_; }  // in the order in which they are to begin
  const WeightLink& link(const Transfer& transfer) const { return base::at(facts_->graph.links, transfer.link); }

  // These request a transfer of the newest weights along every link: to all workers of its destination, or to the one
  // that is back.
  void request_all();
  void request_for(int worker);
  // Notes that the model has this version now, and requests transfers along those of its links that are due.
  void trained(const std::string& model, int64_t version);
  // Notes that no worker has any weights but those of its setup, and forgets all transfers.
  void reset();
  // Prepares for a new process that goes on: nothing is wanted. With exact_versions workers have the weights that they
  // had, from the checkpoint; otherwise they have those of setup.
  void restart();

  // Sets `early` of each transfer that does not run to the answer of the callback. A transfer to workers without any
  // weights is never early.
  void hold(const Workers& workers, const std::function<bool(const Transfer&)>& early);
  bool running() const;
  // Says whether a worker that is there, or may come back, has got no weights since its setup.
  bool lacking(const Workers& workers) const;
  // These say whether workers of the destination, or of any destination, have unlike versions, as after a loss, when
  // the worker got the newest.
  bool uneven(const std::string& destination) const;
  bool uneven() const;
  // Requests the newest weights for all workers of such destinations.
  void request_even();

  // Forgets transfers that nobody is there to receive.
  void prune(const Workers& workers);
  // A Step says how a transfer that does not run goes on: the tasks that are to be closed for it, and whether it
  // begins.
  struct Step {
    std::vector<Task> cut;
    bool begins = false;
  };
  Step step(const Transfer& transfer, const Workers& workers) const;
  // Returns the workers of both sides that take part.
  std::vector<int> workers_of(const Transfer& transfer, const Workers& workers) const;
  // Returns which of the transfer's two models have to be on the worker's device for it.
  std::vector<std::string> models_on(const Transfer& transfer, int worker, const Workers& workers) const;
  // Begins a transfer with the newest version and takes its workers.
  const Transfer& begin(size_t index, Workers& workers);
  // Ends the running transfer that is complete, frees its workers and returns it. Returns nullopt when there is none
  // such.
  std::optional<Transfer> arrived(const std::string& model, int worker, int64_t version, Workers& workers);
  // Notes that a lost worker has no weights. Ends and returns the running transfers that lost their source, which are
  // wanted again, or that have nobody left to receive. The others go on.
  std::vector<Transfer> lost(int worker, Workers& workers);

  // Says whether a task of the node may not start on these workers because a transfer waits.
  bool blocks(const NodeFacts& node, const Replica& replica, const Workers& workers) const;
  // Says whether these workers have the weights that the node needs from links that were due after so many trainings.
  // This follows from the order of iterations and from `blocks`; a start on stale weights would be a defect.
  bool fresh(const NodeFacts& node, const Replica& replica, int64_t trainings) const;

  COLLIMATE_MEMBERS(transfers, trained, versions)

 private:
  void request(int link, int worker);
  std::vector<int> targets_of(const Transfer& transfer, const Workers& workers) const;
  bool uses_destination(const Transfer& transfer, const Task& task) const;
  bool may_stay(const Transfer& transfer, const Task& task) const;
  bool waits_for_destination(const Transfer& transfer, const Workers& workers) const;
  Transfer end(size_t index, Workers& workers);

  std::shared_ptr<const ScheduleFacts> facts_;
  std::vector<Transfer> transfers_;
  std::map<std::string, int64_t> trained_;                   // version of models that train
  std::map<std::pair<std::string, int>, int64_t> versions_;  // (destination of a link, worker)
};

}  // namespace collimate::graph
