#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/cluster/worker.h"
#include "collimate/flow/line_groups.h"
#include "collimate/flow/lockstep.h"
#include "collimate/flow/memory_ledger.h"
#include "collimate/flow/messages.h"
#include "collimate/flow/module.h"
#include "collimate/flow/registry.h"
#include "collimate/flow/weight_link.h"
#include "collimate/flow/worker_options.h"
#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"
#include "collimate/tensor/operation_times.h"

namespace collimate::flow {

// A WorkerHost does what messages ask of the worker of one device: it builds the modules of its models from the
// worker's texts, calls them, steps their streams, and answers. Only the worker's thread uses it.
class WorkerHost : public cluster::Handler {
 public:
  // Sets every module up, which blocks for as long as loading takes. Throws what a module's setup throws.
  WorkerHost(const cluster::WorkerSpec& spec, const Registry& registry);
  ~WorkerHost() override;
  void handle(cluster::Message message, cluster::Outbox& out) override;
  bool step(cluster::Outbox& out) override;

 private:
  // A Hosted is one model's module with its context.
  struct Hosted {
    Context context;
    LineGroups groups;
    std::unique_ptr<Module> module;
  };
  // A Place is this worker's index among the workers that hold a model.
  struct Place {
    int rank = 0;
    int ranks = 1;
  };
  // A Running is one task.
  struct Running {
    graph::Task key;
    std::string model;
    std::string function;
    CallInfo info;
    Hosted* hosted = nullptr;
    bool trains = false;
    std::unique_ptr<Stream> stream;
    Lockstep* lockstep = nullptr;  // the stream, if it steps together with those of other ranks
    std::vector<int64_t> fed;      // uids given to the stream
    double busy_since = 0;         // base::now_seconds() of the first work not yet reported; 0 when there is none
    double busy_seconds = 0;
    int64_t peak_bytes = 0;                                   // most memory of the worker in the work not yet reported
    std::map<std::string, tensor::OperationTime> operations;  // timed operations of that work, by name
  };

  void build(const std::string& model, const Registry& registry, const WorkerOptions& options);
  Place place_of(const std::string& model) const;
  void join_groups(Hosted& hosted, const WorkerOptions& options);
  // These do what a message asks and return the answer to a request.
  void on(const message::Puts& puts) { store_.apply(puts.entries); }
  void on(const message::Start& start);
  void on(const message::Feed& feed);
  void on(const message::Close& close);
  void on(const message::Cancel& cancel);
  void on(const message::Pause& pause);
  void on(const message::Ended& ended) { store_.trim(ended.iteration); }
  message::Resided on(const message::Reside& reside);
  message::Done on(const message::Save& save);
  message::Done on(const message::Load& load);
  message::MemoryReport on(const message::AskMemory&);
  message::Exported on(const message::Export& asked);
  message::Done on(const message::WeightsHere& here);
  message::Weights on(const message::WeightsOut& out);
  message::Done on(const message::WeightsIn& in);
  message::Done on(const message::WeightsEnd& end);

  const std::vector<std::vector<shape::Slice>>& buckets_for(const message::WeightsOut& out);
  template <class Asked>
  IncomingWeights& incoming(const Asked& asked);

  template <class Asked>
  void obey(const Asked& asked);
  // Sends what was put into the store meanwhile, then this.
  template <class Said>
  void reply(Said said);
  void abort_groups(const Hosted& failed, const std::string& cause);
  void drop(const graph::Task& key);
  void beat();
  void check_ranks_agree(Running& task);
  void begin_call();
  void note_operations(Running& task);
  void open(Running& task);
  // Carries out what streams that step in lockstep have been asked so far.
  void settle();
  bool step_task(const graph::Task& key);
  bool step_stream(Running& task);
  void reply_rows(Running& task, std::optional<int64_t> feed, Batch rows);
  void finish(graph::Task key);
  void fail(const graph::Task& key, const std::exception& error);
  WeightsPort& port(const std::string& model);
  Hosted& hosted(const std::string& model);

  // An Outgoing holds a link's buckets for just these workers, by worker.
  struct Outgoing {
    std::vector<int> workers;
    std::map<int, std::vector<std::vector<shape::Slice>>> buckets;
  };
  // An Incoming holds a link's weights that have come of the transfer of that number.
  struct Incoming {
    int64_t transfer = 0;
    IncomingWeights weights;
  };

  cluster::WorkerSpec spec_;
  nlohmann::json config_;
  graph::Graph graph_;
  graph::Placement placement_;
  nlohmann::json calls_;                      // calls_of
  std::map<std::string, Outgoing> outgoing_;  // by link
  std::map<std::string, Incoming> incoming_;
  MemoryLedger ledger_;
  std::optional<tensor::OperationTimes> operation_times_;  // if the driver asks for them; of this thread
  std::unique_ptr<host::CorePool> pool_;
  SharedStore store_;
  SharedObjects objects_;
  std::map<std::string, std::unique_ptr<Hosted>> models_;
  std::map<graph::Task, std::unique_ptr<Running>> tasks_;
  cluster::Outbox* out_ = nullptr;  // while a message or step is handled
  bool shares_rows_ = false;        // the driver shares the rows: the message that is handled came from a thread
  double beat_seconds_ = 0;         // least time between heartbeats to the driver
  double last_beat_ = 0;            // base::now_seconds()
};

}  // namespace collimate::flow
