#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

json to_json(const Task& task) { return {task.iteration, task.node, task.replica, task.part}; }

json to_json(const NodeRun& node) {
  json replicas = json::array();
  for (const ReplicaRun& r : node.replicas)
    replicas.push_back({{"home", graph::to_json(r.home)},
                        {"fed", graph::to_json(r.fed)},
                        {"part", r.part},
                        {"running", r.running},
                        {"closed", r.closed}});
  return {{"done", graph::to_json(node.done)},
          {"failures", node.failures},
          {"called", node.called},
          {"complete", node.complete},
          {"replicas", replicas}};
}

NodeRun node_from_json(const json& value) {
  NodeRun node;
  node.done = row_set_from_json(value.at("done"));
  node.failures = value.at("failures").get<int>();
  node.called = value.at("called").get<bool>();
  node.complete = value.at("complete").get<bool>();
  for (const json& r : value.at("replicas"))
    node.replicas.push_back({row_set_from_json(r.at("home")), row_set_from_json(r.at("fed")), r.at("part").get<int>(),
                             r.at("running").get<bool>(), r.at("closed").get<bool>()});
  return node;
}

json to_json(const IterationRun& run) {
  json nodes = json::array();
  for (const NodeRun& node : run.nodes) nodes.push_back(to_json(node));
  return {{"number", run.number},   {"issued", run.issued},
          {"deficit", run.deficit}, {"dropped", graph::to_json(run.dropped)},
          {"settled", run.settled}, {"nodes", nodes}};
}

IterationRun iteration_from_json(const json& value) {
  IterationRun run;
  run.number = value.at("number").get<int64_t>();
  run.issued = value.at("issued").get<int64_t>();
  run.deficit = value.at("deficit").get<int64_t>();
  run.dropped = row_set_from_json(value.at("dropped"));
  run.settled = value.at("settled").get<bool>();
  for (const json& node : value.at("nodes")) run.nodes.push_back(node_from_json(node));
  return run;
}

json to_json(const WorkerState& w) {
  return {{"lost", w.lost},
          {"cause", w.cause},
          {"transferring", w.transferring},
          {"task", w.task ? to_json(*w.task) : json()}};
}

WorkerState worker_from_json(const json& value) {
  WorkerState w;
  w.lost = value.at("lost").get<bool>();
  w.cause = value.at("cause").get<std::string>();
  w.transferring = value.at("transferring").get<bool>();
  if (const json& task = value.at("task"); !task.is_null())
    w.task = Task{task.at(0).get<int64_t>(), task.at(1).get<int>(), task.at(2).get<int>(), task.at(3).get<int>()};
  return w;
}

json to_json(const Transfer& t) {
  return {{"link", t.link},       {"version", t.version}, {"worker", t.worker},
          {"running", t.running}, {"paused", t.paused},   {"targets", t.targets}};
}

Transfer transfer_from_json(const json& v) {
  return {v.at("link").get<int>(),     v.at("version").get<int64_t>(), v.at("worker").get<int>(),
          v.at("running").get<bool>(), v.at("paused").get<bool>(),     v.at("targets").get<std::vector<int>>()};
}

template <class Map>
json pairs_to_json(const Map& map) {
  json made = json::array();
  for (const auto& [key, value] : map) made.push_back({key.first, key.second, static_cast<int64_t>(value)});
  return made;
}

template <class Map>
void pairs_from_json(const json& list, Map& map) {
  map.clear();
  for (const json& entry : list)
    map[{entry.at(0).get<std::string>(), entry.at(1).get<int>()}] =
        static_cast<typename Map::mapped_type>(entry.at(2).get<int64_t>());
}

template <class List>
json list_to_json(const List& list) {
  json made = json::array();
  for (const auto& item : list) made.push_back(to_json(item));
  return made;
}

}  // namespace

json ScheduleCore::to_json() const {
  json timers = json::array();
  for (const auto& [timer, worker] : timers_) timers.push_back({timer, worker});
  return {{"fingerprint", facts_->fingerprint},
          {"begun", begun_},
          {"stopped", stopped_},
          {"front", front_},
          {"next", next_},
          {"active", list_to_json(active_)},
          {"workers", list_to_json(workers_)},
          {"transfers", list_to_json(transfers_)},
          {"trained", trained_},
          {"versions", pairs_to_json(versions_)},
          {"swaps", pairs_to_json(swaps_)},
          {"timers", timers},
          {"next_timer", next_timer_},
          {"asked", {stop_asked_, save_asked_, evaluate_asked_}},
          {"evaluation", evaluation_ ? json(*evaluation_) : json()},
          {"evaluating", evaluating_}};
}

void ScheduleCore::from_json(const json& value) {
  if (value.at("fingerprint").get<uint64_t>() != facts_->fingerprint)
    throw base::RunError(base::expectation("schedule", "the state of a run of the same graph, placement and rows",
                                           "another one's", "the configuration that the checkpoint was made with"));
  begun_ = value.at("begun").get<bool>();
  stopped_ = value.at("stopped").get<bool>();
  front_ = value.at("front").get<int64_t>();
  next_ = value.at("next").get<int64_t>();
  active_.clear();
  for (const json& run : value.at("active")) active_.push_back(iteration_from_json(run));
  workers_.clear();
  for (const json& state : value.at("workers")) workers_.push_back(worker_from_json(state));
  transfers_.clear();
  for (const json& transfer : value.at("transfers")) transfers_.push_back(transfer_from_json(transfer));
  trained_ = value.at("trained").get<std::map<std::string, int64_t>>();
  pairs_from_json(value.at("versions"), versions_);
  pairs_from_json(value.at("swaps"), swaps_);
  timers_.clear();
  for (const json& timer : value.at("timers")) timers_[timer.at(0).get<int>()] = timer.at(1).get<int>();
  next_timer_ = value.at("next_timer").get<int>();
  const json& asked_for = value.at("asked");
  stop_asked_ = asked_for.at(0).get<bool>();
  save_asked_ = asked_for.at(1).get<bool>();
  evaluate_asked_ = asked_for.at(2).get<bool>();
  evaluation_.reset();
  if (const json& number = value.at("evaluation"); !number.is_null()) evaluation_ = number.get<int64_t>();
  evaluating_ = value.at("evaluating").get<bool>();
}

}  // namespace collimate::graph
