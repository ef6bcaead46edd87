#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/fields.h"
#include "collimate/flow/dist_actor.h"
#include "collimate/flow/driver.h"
#include "collimate/flow/executor.h"
#include "collimate/flow/metric_key.h"
#include "collimate/flow/recording.h"
#include "collimate/flow/result_journal.h"
#include "collimate/flow/row_table.h"
#include "collimate/graph/schedule.h"

namespace collimate::flow {

// Returns the iteration to which a task's calls count. An evaluation before the first iteration counts to the first.
inline int64_t counted(const graph::Task& task) { return std::max<int64_t>(task.iteration, 0); }

// A Drive takes a run's graphs, its own and those of its evaluations, through the workers: it owns their Schedule,
// turns workers' messages into events and actions into messages. It consumes the driver's messages and waits in
// Driver::receive only. Only the driver's thread uses it.
class Drive : public base::Stateful {
 public:
  struct Parts {
    const graph::Graph& graph;  // with the models of all graphs
    const graph::Placement& placement;
    graph::ScheduleOptions schedule;
    RowSource next_rows;
    std::function<void(const IterationResult&)> on_iteration;
    const std::vector<Evaluation>& evaluations;
    graph::DeviceMemory memory;
  };
  Drive(Driver& driver, ResultJournal& journal, Parts parts);

  // These answer the actions kSaveModel and kSave. When unset, nothing happens for them.
  std::function<void(int64_t iteration, const std::string& model)> on_save_model;
  std::function<void(int64_t iteration)> on_save;
  // Writes every event with its actions to a new file. A loaded drive continues the recording `source` of the run in
  // which it was saved, cut back to the checkpoint (and copied where it is another file). Where `source` lacks what the
  // checkpoint lists, or is of another placement, a warning is logged and a new file begins with the loaded schedule,
  // which only serves replays.
  void record(const std::string& path, const std::string& source);

  // Runs to the end of the schedule. Returns how it stopped (done or asked). Throws the first cause of a failure.
  graph::StopKind run();
  // Makes this the only one of all swapped models that is on its workers; "" makes it none. Nothing may run: it is
  // called before or after `run`.
  void bring(const std::string& model);
  int64_t completed() const { return schedule_.completed(); }
  const graph::Graph& graph() const { return parts_.graph; }
  const nlohmann::ordered_json& last_metrics() const { return last_metrics_; }

  // These save and load the schedule, and the rows and metrics of the iterations in progress.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  // A Flow is one of the graphs.
  struct Flow {
    const graph::Graph& graph;
    int64_t rows = 0;
    int64_t group_size = 1;
    RowSource next_rows;
    std::string name;                            // the name of an evaluation
    std::vector<std::vector<int>> sources = {};  // by node: the sources of its input
  };
  struct OpenFeed {
    std::vector<int64_t> numbers;
    std::vector<Batch> parts;  // by rank
    size_t missing = 0;
  };
  struct TaskState {
    graph::Task task;
    const Flow* flow = nullptr;
    const graph::Node* node = nullptr;
    const graph::FunctionSpec* spec = nullptr;
    DistActor actor;
    std::vector<int64_t> held;           // fed rows of a function that needs all, or whole groups, at once
    std::map<int64_t, int64_t> numbers;  // uid → row number of rows that were sent
    std::map<int64_t, OpenFeed> feeds;   // sent and not fully answered, by feed number
    int64_t next_feed = 0;
    std::set<int64_t> answered;  // uids that have come back since they were sent
    size_t finished = 0;         // ranks that have finished
  };
  struct Iteration {
    RowTable rows;
    int64_t fetched = 0;  // input rows asked of the source
    std::map<MetricKey, std::vector<Metric>> metrics;
    std::map<std::pair<int, int>, double> seconds;      // (node, worker) → time spent
    std::map<std::pair<int, int>, int64_t> peak_bytes;  // (node, worker) → most memory of the worker meanwhile
    int64_t sequence = 0;
    double began_seconds = base::now_seconds();

    COLLIMATE_FIELDS(fetched, sequence, metrics)  // saved in a checkpoint, beside the rows
  };
  using IterationKey = std::pair<int, int64_t>;  // graph and iteration, as of a Task
  // A Moving stands for weights on their way along a link.
  struct Moving {
    std::vector<int> from;  // workers of the source
    std::set<int> waiting;  // workers that do not have all of them yet
    graph::Event arrived;   // the event that the schedule then gets
  };

  // drive.cpp
  void apply(const graph::Event& event);
  void act(const graph::Action& action);
  void handle(Received received);
  // These handle a worker's messages. Driver handles puts and heartbeats itself.
  void on(const cluster::Ready&, int worker) {
    gone_.erase(worker);
    events_.push_back(graph::Event::back(worker));
  }
  void on(const cluster::Died& died, int worker);
  void on(const message::Puts&, int) {}
  void on(const message::Heartbeat&, int) {}
  void on(message::Rows& rows, int worker);
  void on(const message::Finished& finished, int worker);
  void on(const message::Failed& failed, int worker);
  template <class Asked>
  void ask(int worker, Asked asked, std::function<void(const typename Asked::Answer&)> answer);
  void poll_stop();
  void expire_timers();
  void add_flow(Flow flow);
  void finish_iterations();
  void finish_evaluation(const graph::Action& action);
  // Passes the metrics and rows of an iteration to `take`.
  void report(const Flow& flow, const Iteration& iteration, int64_t number, double seconds,
              const std::function<void(const IterationResult&)>& take);
  graph::NamedGraphs graphs() const { return {parts_.graph, evaluation_graphs_}; }
  void start_again(int worker, const std::string& cause);
  std::string first_note() const;
  std::string waiting() const;

  // drive_tasks.cpp
  void start(const graph::Action& action);
  void feed(const graph::Task& task, int64_t first, int64_t count);
  // Passes on what a function that wants whole groups was fed since the last call: the schedule feeds all rows that are
  // left of a group one after the other, in pieces where others were dropped between them.
  void end_feeds(const graph::Task& task);
  void close(const graph::Task& task);
  void cancel(const graph::Task& task);
  void dispatch(TaskState& state, std::vector<int64_t> numbers);
  void dispatch_updates(TaskState& state);
  std::vector<int64_t> serve_from_journal(TaskState& state, const std::vector<int64_t>& numbers);
  const Flow& flow_of(const graph::Task& task) const { return base::at(flows_, task.graph); }
  Iteration& iteration_of(const graph::Task& task) { return iterations_[{task.graph, task.iteration}]; }
  // Returns the node's name in the journal.
  static std::string journal_name(const TaskState& state);
  template <class Said>
  void send_to_ranks(const TaskState& state, const Said& said);
  // Sends each rank its batches, as one feed.
  void send_feed(TaskState& state, std::vector<int64_t> numbers, std::vector<std::vector<Batch>> batches);
  Batch rows_for(const TaskState& state, const std::vector<int64_t>& numbers);
  void fetch_inputs(const graph::Task& task, int64_t end);
  void report_call(const TaskState& state, const message::Rows& rows, int worker) const;
  // Notes the metrics and times of a call, and returns the number of the call under which its metrics are kept.
  int64_t note_call(const TaskState& state, const message::Rows& rows, int worker);
  void feed_done(TaskState& state, const OpenFeed& feed, int64_t sequence);
  void outputs(TaskState& state, const Batch& rows, const std::vector<int64_t>& fed, int64_t sequence);
  void journal(TaskState& state, const Batch& rows, const std::vector<int64_t>& uids,
               const std::vector<int64_t>& dropped, int64_t sequence);
  ResultJournal::Call call_made(const TaskState& state, int64_t sequence);
  void count_journaled_call(const TaskState& state, const ResultJournal::Key& key);
  // Returns the keys under which the journal knows each row: they include a digest of the columns that the node needs.
  std::vector<ResultJournal::Key> journal_keys(const TaskState& state, const Batch& rows) const;
  void push_runs(const graph::Task& task, std::vector<int64_t> numbers, bool dropped);

  // drive_transitions.cpp
  void transition(const graph::Action& action);
  void note_move(const graph::Action& action, const message::Resided& done);
  void transfer(const graph::Action& action);
  void transfer_between(const std::shared_ptr<Moving>& moving, message::WeightsOut asked);
  void pass_bucket(const std::shared_ptr<Moving>& moving, int from, const message::WeightsOut& asked, int64_t transfer,
                   const std::function<void()>& sent);
  // Notes that a worker of a transfer has its weights, or will not get them. With the last worker the transfer ends.
  void settle(Moving& moving, int worker);
  void forget_transfers_of(int worker);  // the worker has died

  Driver& driver_;
  ResultJournal& journal_;
  Parts parts_;
  std::vector<graph::EvaluationGraph> evaluation_graphs_;
  graph::Schedule schedule_;
  std::deque<Flow> flows_;  // by graph, as Task::graph
  std::deque<graph::Event> events_;
  std::map<graph::Task, TaskState> tasks_;
  std::map<IterationKey, Iteration> iterations_;
  std::map<int64_t, std::function<void(Received)>> answers_;  // to requests of this drive, by number
  std::map<int, double> timers_;                              // timer → base::now_seconds() when it expires
  int64_t next_ask_ = -1;                                     // negative, unlike those of Driver::request
  int64_t transfers_ = 0;                                     // number of the last transfer between workers
  std::vector<std::shared_ptr<Moving>> moving_;
  std::map<int, double> swap_seconds_;  // worker → time spent moving models since the last report
  std::set<int> gone_;                  // workers that have died and are not back
  int64_t reported_ = 0;                // iterations given to on_iteration
  double last_end_seconds_ = 0;
  std::string first_cause_;
  int first_exit_code_ = 1;
  std::optional<graph::Action> stop_;
  bool stop_asked_ = false;
  nlohmann::ordered_json last_metrics_;
  std::optional<Recording> recording_;
  Recorded recorded_;   // at the last save or load
  bool moved_ = false;  // it was loaded from a save under another placement
  bool ran_ = false;
};

}  // namespace collimate::flow
