#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/words.h"
#include "collimate/graph/schedule_barrier.h"
#include "collimate/graph/schedule_facts.h"
#include "collimate/graph/schedule_iteration.h"
#include "collimate/graph/schedule_swaps.h"
#include "collimate/graph/schedule_transfers.h"
#include "collimate/graph/schedule_workers.h"

// A ScheduleCore is the state behind Schedule. It consists of values that know nothing of each other's decisions
// (iterations, workers, swaps, transfers, barrier) and of what follows from all of them, one .cpp per concern: rows
// (what is fed to whom), start (what runs next), weights (links and residency), failure, iterations (begin, stop),
// between (saves and evaluations), state (save and load).
namespace collimate::graph {

// A Wait says why a replica of a node does not start.
enum class Wait { kNothing, kDone, kRows, kInputs, kWorker, kOrder, kAfter, kTransfer, kBarrier };
constexpr auto words_of(Wait) {
  return base::Words<Wait, 9>{"wait",
                              {"for a load or off-load", "", "for rows of its inputs", "for its inputs to be complete",
                               "for its worker", "for its turn on its worker", "for a control dependency",
                               "for a weight transfer to take place", "for a save, an evaluation or the end"}};
}

class ScheduleCore {
 public:
  explicit ScheduleCore(std::shared_ptr<const ScheduleFacts> facts);

  std::span<const Action> on(const Event& event);
  std::vector<Action> bring(const std::string& model, bool at_setup);
  std::string waiting() const;
  nlohmann::json to_json() const;
  void from_json(const nlohmann::json& json);

  bool stopped() const { return stopped_; }
  int64_t completed() const { return front_ - facts_->options.first_iteration; }

 private:
  template <class Self>
  static void fields(Self& self, auto&& field);  // in schedule_state.cpp, like the next function
  void place_anew();

  // schedule_core.cpp
  void handle(const Event& event);
  void given(const Event& event);
  const ScheduleOptions& options() const { return facts_->options; }
  const GraphFacts& facts_of(const IterationRun& run) const { return facts_->of(run.graph); }
  int64_t rows_of(const IterationRun& run) const {
    return run.graph == 0 ? options().rows_in(run.number) : facts_of(run).rows;
  }
  std::vector<IterationRun*> runs();  // the run of an evaluation, then the iterations in progress
  std::vector<const IterationRun*> runs() const;
  IterationRun* run_of(const Task& task);
  ReplicaRun* running(const Task& task);  // null when that task is gone
  const Replica& workers_of_task(const Task& task) const;
  Action& emit(ActionKind kind);
  Action& emit(ActionKind kind, const Task& task);
  void emit(const std::vector<Swaps::Move>& moves);

  // schedule_rows.cpp
  void rows_done(IterationRun& run, int node, const RowSet& rows);
  void rows_dropped(IterationRun& run, const Task& task, RowRange range);
  void refill(IterationRun& run);
  void feed(IterationRun& run, int node, int replica, RowRange window);
  void close_if_fed(IterationRun& run, int node, int replica);
  void close(const Task& task, ReplicaRun& replica);
  void cut(const Task& task);
  void finished(const Task& task);
  void update(IterationRun& run);
  bool lacks_rows(const IterationRun& run, int node) const;
  void update_settled(IterationRun& run);
  void node_complete(IterationRun& run, int node);

  // schedule_start.cpp
  void pump();
  bool start_one();
  Wait wait_of(const IterationRun& run, int node, int replica) const;
  bool order_allows(const IterationRun& run, int node, const Replica& workers) const;
  void start(IterationRun& run, int node, int replica);
  void start_whole(IterationRun& run, int node);
  std::string waiting(const IterationRun& run) const;

  // schedule_weights.cpp
  bool resident(const std::vector<std::string>& models, const std::vector<int>& workers);
  void advance_transfers();
  void hold_early_transfers();
  bool save_lacks_weights() const;
  bool has_called(const IterationRun& run, const std::string& model) const;
  bool advance_transfer(size_t index);
  void begin_transfer(size_t index);
  void weights_at(const Event& event);
  void ended(const Transfer& transfer);

  // schedule_failure.cpp
  void failed(const Event& event);
  void give_back(const Task& task);
  void move_rows(IterationRun& run, int node, int from);
  void move_lost_rows();
  void lost(const Event& event);
  void lose_task(int index, const std::string& cause);
  bool holds_state(int index, std::string& model) const;
  void back(int index);
  void expired(int timer);

  // schedule_iterations.cpp
  void begin();
  void restart();
  void open_iterations();
  void close_iterations();
  void after_iteration(int64_t number);
  void asked(Ask ask);
  void stop(StopKind kind, const std::string& cause);
  void stop_if_done();

  // schedule_between.cpp
  bool workers_free();
  void save_after(int64_t number, const std::string& stop_cause);
  void advance_save();
  void advance_evaluations();
  void end_evaluation();
  void open_evaluation();

  std::shared_ptr<const ScheduleFacts> facts_;
  std::vector<Action> actions_;  // of the current event
  bool begun_ = false;
  bool stopped_ = false;
  bool changed_ = false;  // something changed that may let a task start
  int64_t front_ = 0;     // all iterations before this one are complete
  int64_t next_ = 0;      // the first iteration that is not begun
  std::deque<IterationRun> active_;
  std::vector<IterationRun> evaluations_;  // the one evaluation that runs, or none
  Workers workers_;
  Swaps swaps_;
  Transfers transfers_;
  Barrier barrier_;
};

}  // namespace collimate::graph
