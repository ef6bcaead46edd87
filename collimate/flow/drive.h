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

// The iteration that an evaluation's calls count as one of, where that before the first one is of the first.
inline int64_t counted(const graph::Task& task) { return std::max<int64_t>(task.iteration, 0); }

// The way of a run's graphs through the workers, its own and those of its evaluations: owns their Schedule, turns
// workers' messages into events and actions into messages. Consumes the driver's messages, produces theirs; waits in
// Driver::receive only. Used by the driver's thread alone.
class Drive : public base::Stateful {
 public:
  struct Parts {
    const graph::Graph& graph;  // with the models of all
    const graph::Placement& placement;
    graph::ScheduleOptions schedule;
    RowSource next_rows;
    std::function<void(const IterationResult&)> on_iteration;
    const std::vector<Evaluation>& evaluations;
    graph::DeviceMemory memory;
  };
  Drive(Driver& driver, ResultJournal& journal, Parts parts);

  // These answer SaveModel and Save; unset, both are answered by nothing.
  std::function<void(int64_t iteration, const std::string& model)> on_save_model;
  std::function<void(int64_t iteration)> on_save;
  // Writes every event with its actions to a new file; a loaded drive goes on with the recording `source` of the run
  // that it was saved in, cut back to the checkpoint (and copied where it is another file). Where `source` lacks what
  // the checkpoint tells of, or is of another placement, a new file begins with the loaded schedule, which is logged:
  // it serves replays alone.
  void record(const std::string& path, const std::string& source);

  // Runs to the end of the schedule: returns how it stopped (done or asked). Throws the first cause of a failure.
  graph::StopKind run();
  // When nothing runs, before or after `run`: of all swapped models this one alone is on its workers; "": none is.
  void bring(const std::string& model);
  int64_t completed() const { return schedule_.completed(); }
  const graph::Graph& graph() const { return parts_.graph; }
  const nlohmann::ordered_json& last_metrics() const { return last_metrics_; }

  // Schedule, rows and metrics of the iterations in progress.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  // One of the graphs.
  struct Flow {
    const graph::Graph& graph;
    int64_t rows = 0;
    int64_t group_size = 1;
    RowSource next_rows;
    std::string name;                            // of an evaluation
    std::vector<std::vector<int>> sources = {};  // by node: of its input
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
    std::vector<int64_t> held;           // fed rows of a function that wants all at once
    std::map<int64_t, int64_t> numbers;  // uid → row number of what was sent
    std::map<int64_t, OpenFeed> feeds;   // sent and not fully answered, by feed number
    int64_t next_feed = 0;
    std::set<int64_t> answered;  // uids that came back since they were sent
    size_t finished = 0;         // ranks
  };
  struct Iteration {
    RowTable rows;
    int64_t fetched = 0;  // input rows asked of the source
    std::map<MetricKey, std::vector<Metric>> metrics;
    std::map<std::pair<int, int>, double> seconds;      // (node, worker) → time spent
    std::map<std::pair<int, int>, int64_t> peak_bytes;  // the same → most memory of the worker meanwhile
    int64_t sequence = 0;
    double began_seconds = base::now_seconds();

    COLLIMATE_FIELDS(fetched, sequence, metrics)  // kept in a checkpoint, beside the rows
  };
  using IterationKey = std::pair<int, int64_t>;  // graph and iteration, as of a Task
  // Weights on their way along a link.
  struct Moving {
    std::vector<int> from;  // workers
    std::set<int> waiting;  // workers that have not all of them
    graph::Event arrived;   // what the schedule is told
  };

  // drive.cpp
  void apply(const graph::Event& event);
  void act(const graph::Action& action);
  void handle(Received received);
  // Take what a worker said. Driver keeps puts and heartbeats to itself.
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
  // Gives `take` the metrics and rows of an iteration.
  void report(const Flow& flow, const Iteration& iteration, int64_t number, double seconds,
              const std::function<void(const IterationResult&)>& take);
  graph::NamedGraphs graphs() const { return {parts_.graph, evaluation_graphs_}; }
  void start_again(int worker, const std::string& cause);
  std::string first_note() const;
  std::string waiting() const;

  // drive_tasks.cpp
  void start(const graph::Action& action);
  void feed(const graph::Task& task, int64_t first, int64_t count);
  void close(const graph::Task& task);
  void cancel(const graph::Task& task);
  void dispatch(TaskState& state, std::vector<int64_t> numbers);
  void dispatch_updates(TaskState& state);
  std::vector<int64_t> serve_from_journal(TaskState& state, const std::vector<int64_t>& numbers);
  const Flow& flow_of(const graph::Task& task) const { return base::at(flows_, task.graph); }
  Iteration& iteration_of(const graph::Task& task) { return iterations_[{task.graph, task.iteration}]; }
  // The node's name in the journal.
  static std::string journal_name(const TaskState& state);
  template <class Said>
  void send_to_ranks(const TaskState& state, const Said& said);
  // To each rank its batches, as one feed.
  void send_feed(TaskState& state, std::vector<int64_t> numbers, std::vector<std::vector<Batch>> batches);
  Batch rows_for(const TaskState& state, const std::vector<int64_t>& numbers);
  void fetch_inputs(const graph::Task& task, int64_t end);
  void report_call(const TaskState& state, const message::Rows& rows, int worker) const;
  // The call's number among those of its task: what its metrics are kept under.
  int64_t note_call(const TaskState& state, const message::Rows& rows, int worker);
  void feed_done(TaskState& state, const OpenFeed& feed, int64_t sequence);
  void outputs(TaskState& state, const Batch& rows, const std::vector<int64_t>& fed, int64_t sequence);
  void journal(TaskState& state, const Batch& rows, const std::vector<int64_t>& uids,
               const std::vector<int64_t>& dropped, int64_t sequence);
  ResultJournal::Call call_made(const TaskState& state, int64_t sequence);
  void count_journaled_call(const TaskState& state, const ResultJournal::Key& key);
  // The keys name what the node is asked about each row, as the journal knows it.
  std::vector<ResultJournal::Key> journal_keys(const TaskState& state, const Batch& rows) const;
  void push_runs(const graph::Task& task, std::vector<int64_t> numbers, bool dropped);

  // drive_transitions.cpp
  void transition(const graph::Action& action);
  void note_move(const graph::Action& action, const message::Resided& done);
  void transfer(const graph::Action& action);
  void transfer_between(const std::shared_ptr<Moving>& moving, message::WeightsOut asked);
  void pass_bucket(const std::shared_ptr<Moving>& moving, int from, const message::WeightsOut& asked, int64_t transfer,
                   const std::function<void()>& sent);
  // A worker of a transfer has its weights, or will not have them: with the last one the transfer ends.
  void settle(Moving& moving, int worker);
  void forget_transfers_of(int worker);  // which has died

  Driver& driver_;
  ResultJournal& journal_;
  Parts parts_;
  std::vector<graph::EvaluationGraph> evaluation_graphs_;
  graph::Schedule schedule_;
  std::deque<Flow> flows_;  // by number, as Task::graph
  std::deque<graph::Event> events_;
  std::map<graph::Task, TaskState> tasks_;
  std::map<IterationKey, Iteration> iterations_;
  std::map<int64_t, std::function<void(Received)>> answers_;  // to its requests, by number
  std::map<int, double> timers_;                              // timer → base::now_seconds() when it expires
  int64_t next_ask_ = -1;                                     // negative, apart from Driver::request's
  int64_t transfers_ = 0;                                     // number of the last one between workers
  std::vector<std::shared_ptr<Moving>> moving_;
  std::map<int, double> swap_seconds_;  // worker → time in which models came and left since the last report
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
  bool moved_ = false;  // it was loaded, and saved under another placement
  bool ran_ = false;
};

}  // namespace collimate::flow
