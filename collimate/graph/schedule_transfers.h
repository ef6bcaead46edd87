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
  int worker = -1;  // of the destination; -1: all
  bool running = false;
  bool paused = false;       // the destination's service
  std::vector<int> targets;  // destination workers that take part, once running
  bool early = false;        // waits for iterations that draw by older weights; known anew before it is looked at
  bool operator==(const Transfer&) const = default;

  COLLIMATE_FIELDS(link, version, worker, running, paused, targets)
};

// Which version of which weights is where, and the transfers that are wanted or running. A transfer waits in two steps.
// While a task of the destination runs, only the destination's tasks and the source's training are kept from starting;
// that task is closed so that it ends by itself. Then all workers of both sides are kept free until the transfer has
// taken place. With update_in_flight a streaming task of the destination stays and is paused. Internal to
// schedule*.cpp.
class Transfers {
 public:
  explicit Transfers(std::shared_ptr<const ScheduleFacts> facts);

  bool empty() const { return transfers_.empty(); }
  bool all_early() const;                                          // or none is wanted
  const std::vector<Transfer>& all() const { return transfers_; }  // in the order in which they are to begin
  const WeightLink& link(const Transfer& transfer) const { return base::at(facts_->graph.links, transfer.link); }

  // The newest weights along every link: to all workers of its destination, or to the one that is back.
  void request_all();
  void request_for(int worker);
  // The model has this version now, which its links that are due carry on.
  void trained(const std::string& model, int64_t version);
  // No worker has any weights but those of its setup, and nothing is wanted.
  void reset();
  // A new process goes on: nothing is wanted, and workers have what a checkpoint brought them: with exact_versions what
  // they had, else those of setup.
  void restart();

  // Sets `early` of each that does not run by what is asked of it; one to workers without any weights never is.
  void hold(const Workers& workers, const std::function<bool(const Transfer&)>& early);
  bool running() const;
  // Whether a worker that is there, or may come back, has not got any weights since its setup.
  bool lacking(const Workers& workers) const;
  // Whether workers of the destination, or of any, have unlike versions: one that was lost got the newest.
  bool uneven(const std::string& destination) const;
  bool uneven() const;
  // The newest weights to all workers of such destinations.
  void request_even();

  // Forgets those that nobody is there to receive.
  void prune(const Workers& workers);
  // How a transfer that does not run goes on: the tasks that are to be closed for it, and whether it begins.
  struct Step {
    std::vector<Task> cut;
    bool begins = false;
  };
  Step step(const Transfer& transfer, const Workers& workers) const;
  // The workers of both sides that take part.
  std::vector<int> workers_of(const Transfer& transfer, const Workers& workers) const;
  // Names those of the transfer's two models that have to be on the worker's device for it.
  std::vector<std::string> models_on(const Transfer& transfer, int worker, const Workers& workers) const;
  // Begins it, with the newest version, and takes its workers.
  const Transfer& begin(size_t index, Workers& workers);
  // The running one that is complete, which has freed its workers; nullopt when none is meant.
  std::optional<Transfer> arrived(const std::string& model, int worker, int64_t version, Workers& workers);
  // A lost worker has no weights. Gives the running ones that end with it: without their source, which are wanted
  // again, or with nobody left to receive. The others go on.
  std::vector<Transfer> lost(int worker, Workers& workers);

  // Whether a task of the node may not start on these workers, because a transfer waits.
  bool blocks(const NodeFacts& node, const Replica& replica, const Workers& workers) const;
  // Whether these workers have what the node needs, of links that were due after so many trainings. Follows from the
  // order of iterations and from `blocks`; a start on stale weights would be a defect.
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
