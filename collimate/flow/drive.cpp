#include "collimate/flow/drive.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/graph/recording.h"

namespace collimate::flow {
namespace {

// The driver sleeps at most this long before it looks at timers and the stop flag.
constexpr double kPollSeconds = 0.2;

// Returns the graphs of the evaluations over the models as the run's own graph knows them.
std::vector<graph::EvaluationGraph> known_graphs(const graph::Graph& graph,
                                                 const std::vector<Evaluation>& evaluations) {
  std::vector<graph::EvaluationGraph> graphs = graphs_of(evaluations);
  for (graph::EvaluationGraph& evaluation : graphs) evaluation.graph.models = graph.models;
  return graphs;
}

}  // namespace

Drive::Drive(Driver& driver, ResultJournal& journal, Parts parts)
    : driver_(driver),
      journal_(journal),
      parts_(std::move(parts)),
      evaluation_graphs_(known_graphs(parts_.graph, parts_.evaluations)),
      schedule_(parts_.graph, parts_.placement, parts_.schedule, evaluation_graphs_, parts_.memory),
      last_end_seconds_(base::now_seconds()) {
  add_flow({parts_.graph, parts_.schedule.rows, parts_.schedule.group_size, parts_.next_rows, ""});
  for (size_t i = 0; i < evaluation_graphs_.size(); ++i) {
    const graph::EvaluationGraph& evaluation = evaluation_graphs_[i];
    add_flow(
        {evaluation.graph, evaluation.rows, evaluation.group_size, parts_.evaluations[i].next_rows, evaluation.name});
  }
}

void Drive::add_flow(Flow flow) {
  for (size_t node = 0; node < flow.graph.nodes.size(); ++node)
    flow.sources.push_back(input_sources(flow.graph, static_cast<int>(node)));
  flows_.push_back(std::move(flow));
}

void Drive::record(const std::string& path, const std::string& source) {
  const bool resumed = recorded_.bytes >= 0;
  const std::string problem = !resumed ? ""
                              : moved_ ? "those of another placement"
                                       : recording_problem(source, recorded_);
  if (resumed && problem.empty()) {
    recording_.emplace(path, source, recorded_);
    return;
  }
  if (resumed)
    base::log_warning("{}: expected the {} bytes that the checkpoint lists, got {}: a new recording begins here",
                      source, recorded_.bytes, problem);
  const graph::RecordedRun run{parts_.graph, parts_.placement, parts_.schedule, evaluation_graphs_, parts_.memory};
  recording_.emplace(path, graph::recording_header(run, resumed ? &schedule_ : nullptr));
}

graph::StopKind Drive::run() {
  ran_ = true;
  events_.push_back(graph::Event::begin());
  while (!stop_) {
    if (!events_.empty()) {
      graph::Event event = std::move(events_.front());
      events_.pop_front();
      apply(event);
      continue;
    }
    poll_stop();
    expire_timers();
    if (!events_.empty()) continue;
    if (tasks_.empty() && answers_.empty() && timers_.empty())
      throw base::RunError(
          base::expectation("schedule", "something that runs or is waited for", "nothing:\n" + waiting()));
    std::optional<Received> received = driver_.receive(kPollSeconds, [this] { return waiting(); });
    if (received) handle(std::move(*received));
  }
  if (stop_->stop == graph::StopKind::kFailed)
    throw_failure(first_cause_.empty() ? fmt::format("{}{}", stop_->cause, first_note()) : first_cause_,
                  first_exit_code_);
  return stop_->stop;
}

void Drive::apply(const graph::Event& event) {
  auto given = schedule_.on(event);
  std::vector<graph::Action> actions(given.begin(), given.end());
  if (recording_) recording_->step(event, actions);
  finish_iterations();
  const auto fails = [](const graph::Action& action) {
    return action.kind == graph::ActionKind::kStop && action.stop == graph::StopKind::kFailed;
  };
  if (event.kind == graph::EventKind::kLost && std::none_of(actions.begin(), actions.end(), fails))
    start_again(event.worker, event.cause);
  for (size_t i = 0; i < actions.size(); ++i) {
    act(actions[i]);
    const bool feeds = actions[i].kind == graph::ActionKind::kFeed;
    const bool more = feeds && i + 1 < actions.size() && actions[i + 1].kind == graph::ActionKind::kFeed &&
                      actions[i + 1].task == actions[i].task;
    if (feeds && !more) end_feeds(actions[i].task);
  }
}

// Starts a lost worker again. It is called only where the schedule can go on without what the worker held, and before
// any action is sent, because what follows, even the end of the run, asks every worker.
void Drive::start_again(int worker, const std::string& cause) {
  if (!driver_.restart(worker)) throw_failure(cause, 1);
  base::log_warning("{}; starting it again", cause);
}

void Drive::act(const graph::Action& action) {
  switch (action.kind) {
    case graph::ActionKind::kStart:
      return start(action);
    case graph::ActionKind::kFeed:
      return feed(action.task, action.first, action.count);
    case graph::ActionKind::kClose:
      return close(action.task);
    case graph::ActionKind::kCancel:
      return cancel(action.task);
    case graph::ActionKind::kPause:
    case graph::ActionKind::kResume: {
      const bool paused = action.kind == graph::ActionKind::kPause;
      for (int worker : graph::workers_of(parts_.graph, parts_.placement, action.model))
        driver_.send(worker, message::Pause{action.model, paused});
      return;
    }
    case graph::ActionKind::kTransition:
      return transition(action);
    case graph::ActionKind::kArm:
      timers_[action.timer] = base::now_seconds() + action.seconds;
      return;
    case graph::ActionKind::kSave:
      if (recording_) recorded_ = recording_->sync();
      if (on_save) on_save(action.iteration);
      return;
    case graph::ActionKind::kSaveModel:
      if (on_save_model) on_save_model(action.iteration, action.model);
      return;
    case graph::ActionKind::kEvaluated:
      return finish_evaluation(action);
    case graph::ActionKind::kStop:
      stop_ = action;
      if (recording_) recording_->flush();
      return;
  }
}

void Drive::handle(Received received) {
  const int worker = received.worker;
  const auto take = [&](auto& said) {
    if constexpr (requires { said.request; }) {
      if (auto found = answers_.extract(said.request)) found.mapped()(std::move(received));
    } else {
      on(said, worker);
    }
  };
  std::visit(take, received.content);
}

void Drive::poll_stop() {
  const RunOptions& options = driver_.options();
  if (options.on_poll) options.on_poll();
  if (options.stop == nullptr || stop_asked_ || !options.stop->requested()) return;
  stop_asked_ = true;
  events_.push_back(graph::Event::asked(graph::Ask::kStop));
}

void Drive::expire_timers() {
  double now = base::now_seconds();
  for (auto timer = timers_.begin(); timer != timers_.end();) {
    if (timer->second > now) {
      ++timer;
      continue;
    }
    events_.push_back(graph::Event::expired(timer->first));
    timer = timers_.erase(timer);
  }
}

void Drive::on(const message::Failed& failed, int worker) {
  if (failed.follows) return;  // the rank that aborted the group says why, or its worker has died
  const graph::Task task = failed.task;
  auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  const graph::Node& node = *found->second.node;
  std::string cause = failed.cause;
  if (driver_.options().names_places)
    cause += fmt::format(" (model {}, worker {}, iteration {}, node {})", node.model, worker,
                         graph::step_of(counted(task)), node.id);
  bool retryable = failed.retryable && found->second.spec->retry_safe;
  if (first_cause_.empty() && !retryable) {
    first_cause_ = cause;
    first_exit_code_ = failed.exit_code;
  }
  if (cause != first_cause_) base::log_warning("{}", cause);  // the first cause ends the run, which reports it
  cancel(task);
  events_.push_back(graph::Event::failed(task, retryable, cause));
}

void Drive::on(const cluster::Died& died, int worker) {
  if (!died.lost) throw_failure(died.cause, died.exit_code);
  std::erase_if(tasks_, [&](const auto& item) {
    const std::vector<int>& workers = item.second.actor.workers();
    return std::find(workers.begin(), workers.end(), worker) != workers.end();
  });
  events_.push_back(graph::Event::lost(worker, died.cause));
  gone_.insert(worker);
  forget_transfers_of(worker);
}

void Drive::finish_iterations() {
  while (reported_ < schedule_.completed()) {
    const int64_t number = parts_.schedule.first_iteration + reported_++;
    const double now = base::now_seconds();
    report(flows_[0], iterations_[{0, number}], number, now - std::exchange(last_end_seconds_, now),
           parts_.on_iteration);
    iterations_.erase({0, number});
    driver_.store().trim(number);    // as workers do with what they hold
    journal_.forget_before(number);  // an evaluation after this iteration counts as one of its calls
    for (int worker = 0; worker < driver_.workers(); ++worker)
      if (!gone_.contains(worker)) driver_.send(worker, message::Ended{number});
  }
}

void Drive::finish_evaluation(const graph::Action& action) {
  const auto found = iterations_.extract({action.graph, action.iteration});
  const Iteration& iteration = found.mapped();
  report(base::at(flows_, action.graph), iteration, action.iteration, base::now_seconds() - iteration.began_seconds,
         base::at(parts_.evaluations, action.graph - 1).on_result);
  last_end_seconds_ += base::now_seconds() - iteration.began_seconds;  // no part of the next iteration
}

void Drive::report(const Flow& flow, const Iteration& iteration, int64_t number, double seconds,
                   const std::function<void(const IterationResult&)>& take) {
  MetricSet metrics;
  for (const auto& [key, measured] : iteration.metrics) metrics.add(measured);
  for (const auto& [place, spent] : iteration.seconds)
    metrics.add({"timing_s/" + flow.graph.node(place.first).id, spent, Reduce::kMax, 1.0});
  if (&flow == &flows_[0])
    for (const auto& [worker, spent] : std::exchange(swap_seconds_, {}))
      metrics.add({"timing_s/swap", spent, Reduce::kMax, 1.0});
  for (const auto& [place, bytes] : iteration.peak_bytes)
    metrics.add({"memory/peak_bytes/" + flow.graph.node(place.first).id, static_cast<double>(bytes), Reduce::kMax});
  const nlohmann::ordered_json values = metrics.values();
  std::map<std::string, Batch> batches;
  for (size_t n = 0; n < flow.graph.nodes.size(); ++n) {
    const std::vector<int64_t> numbers = iteration.rows.numbers(static_cast<int>(n));
    std::vector<int> sources = flow.sources[n];
    sources.push_back(static_cast<int>(n));
    if (!numbers.empty()) batches[flow.graph.nodes[n].id] = iteration.rows.join(sources, numbers);
  }
  if (&flow == &flows_[0]) last_metrics_ = values;
  if (take) take({number, values, batches, seconds, metrics.notes()});
}

void Drive::bring(const std::string& model) {
  for (const graph::Action& move : schedule_.bring(model, !ran_))
    driver_.request({move.worker},
                    message::Reside{.model = move.model, .on_device = move.transition == graph::TransitionKind::kLoad});
}

// Returns the first note among the metrics of unfinished iterations, which may say why no rows were left, or "".
std::string Drive::first_note() const {
  for (const auto& [where, iteration] : iterations_)
    for (const auto& [key, measured] : iteration.metrics)
      for (const Metric& metric : measured)
        if (!metric.note.empty()) return "; " + metric.note;
  return "";
}

std::string Drive::waiting() const {
  std::string text = schedule_.waiting();
  for (const auto& [task, state] : tasks_)
    text += fmt::format("\n  {} on worker {}: {} feeds without answer", graph::describe(graphs(), task),
                        fmt::join(state.actor.workers(), ", "), state.feeds.size());
  return text;
}

void Drive::save(base::StateWriter& out) const {
  schedule_.save(out);
  out.json("drive/placement", graph::to_json(parts_.placement));
  nlohmann::json open = nlohmann::json::array();
  for (const auto& [key, iteration] : iterations_) {
    const auto [graph, number] = key;
    if (graph != 0) continue;  // an evaluation starts again
    open.push_back(iteration);
    open.back()["iteration"] = number;
    iteration.rows.save(out, fmt::format("rows/{}/", number));
  }
  out.json("drive/open", open);
  out.json("drive/reported", reported_);
  out.json("drive/recorded_bytes", recorded_.bytes);
  if (recorded_.crc32c) out.json("drive/recorded_crc32c", *recorded_.crc32c);
}

void Drive::load(base::StateReader& in) {
  schedule_.load(in);
  moved_ = in.json("drive/placement") != graph::to_json(parts_.placement);
  reported_ = in.json("drive/reported").get<int64_t>();
  recorded_.bytes = in.json("drive/recorded_bytes").get<int64_t>();
  if (in.has("drive/recorded_crc32c")) recorded_.crc32c = in.json("drive/recorded_crc32c").get<uint32_t>();
  for (const nlohmann::json& item : in.json("drive/open")) {
    int64_t number = item.at("iteration").get<int64_t>();
    if (number >= parts_.schedule.iterations) continue;  // the run is shorter now
    Iteration& iteration = iterations_[{0, number}];
    item.get_to(iteration);
    iteration.rows.load(in, fmt::format("rows/{}/", number));
  }
}

}  // namespace collimate::flow
