#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/cluster/worker.h"
#include "collimate/comm/group.h"
#include "collimate/flow/memory_ledger.h"
#include "collimate/flow/module.h"
#include "collimate/flow/registry.h"
#include "collimate/flow/task_key.h"
#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"
#include "collimate/tensor/operation_times.h"

namespace collimate::flow {

// The host does what messages ask of the worker of one device: builds the modules of its models from the worker's
// texts, calls them, steps their streams, and answers. Used by the worker's thread alone.
class WorkerHost : public cluster::Handler {
 public:
  // Sets every module up; blocks for as long as loading takes. Throws what a module's setup throws.
  WorkerHost(const cluster::WorkerSpec& spec, const Registry& registry);
  ~WorkerHost() override;
  void handle(cluster::Message message, cluster::Outbox& out) override;
  bool step(cluster::Outbox& out) override;

 private:
  // One model's module with its context.
  struct Hosted {
    Context context;
    std::unique_ptr<comm::Group> group;
    std::unique_ptr<Module> module;
  };
  // One task.
  struct Running {
    TaskKey key;
    std::string model;
    std::string function;
    CallInfo info;
    Hosted* hosted = nullptr;
    bool trains = false;
    std::unique_ptr<Stream> stream;
    std::vector<int64_t> fed;  // uids given to the stream
    double busy_since = 0;     // base::now_seconds() of the first work not yet reported; 0 when there is none
    double busy_seconds = 0;
    int64_t peak_bytes = 0;                                   // of the worker's memory in the work not yet reported
    std::map<std::string, std::array<double, 3>> operations;  // timed ones of that work: calls, total, self seconds
  };

  void build(const std::string& model, const Registry& registry, const nlohmann::json& options);
  void join_group(Hosted& hosted, const std::string& model, const nlohmann::json& options);
  void dispatch(const std::string& type, const cluster::Message& message, cluster::Outbox& out);
  void start(const cluster::Message& message);
  void feed(const cluster::Message& message, Running& task, cluster::Outbox& out);
  void close(Running& task, cluster::Outbox& out);
  void weights(const cluster::Message& message, cluster::Outbox& out);
  void save(const std::string& directory);
  void load(const std::string& directory);
  void hooks(bool before, int64_t iteration);
  void drop(const TaskKey& key);
  void beat();
  void check_ranks_agree(Running& task);
  void begin_call();
  void note_operations(Running& task);
  bool step_stream(Running& task, cluster::Outbox& out);
  void reply_rows(Running& task, const nlohmann::json& feed, Batch rows, cluster::Outbox& out);
  void fail(const TaskKey& key, const std::exception& error, cluster::Outbox& out);
  void reply(nlohmann::json header, cluster::Outbox& out);
  Hosted& hosted(const std::string& model);

  cluster::WorkerSpec spec_;
  nlohmann::json config_;
  graph::Graph graph_;
  graph::Placement placement_;
  MemoryLedger ledger_;
  std::optional<tensor::OperationTimes> operation_times_;  // where the driver asks for them; of this thread
  std::unique_ptr<host::CorePool> pool_;
  SharedStore store_;
  SharedObjects objects_;
  std::map<std::string, std::unique_ptr<Hosted>> models_;
  std::map<TaskKey, std::unique_ptr<Running>> tasks_;
  cluster::Outbox* out_ = nullptr;  // while a message or step is handled
  double beat_seconds_ = 0;         // between heartbeats to the driver, at least
  double last_beat_ = 0;            // base::now_seconds()
};

}  // namespace collimate::flow
