#include "collimate/graph/recording.h"

#include "collimate/base/memory_state.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

json state_of(const Schedule& schedule) {
  base::MemoryState state;
  schedule.save(state);
  return state.json("schedule");
}

json json_of(const EvaluationGraph& evaluation) {
  return {{"name", evaluation.name},   {"graph", text(evaluation.graph)},
          {"rows", evaluation.rows},   {"group_size", evaluation.group_size},
          {"every", evaluation.every}, {"first", evaluation.first}};
}

}  // namespace

std::string recording_header(const RecordedRun& run, const Schedule* resumed) {
  json header = {{"graph", text(run.graph)}, {"placement", to_json(run.placement)}, {"options", run.options}};
  for (const EvaluationGraph& evaluation : run.evaluations) header["evaluations"].push_back(json_of(evaluation));
  if (run.memory != DeviceMemory()) header["memory"] = run.memory;
  if (resumed != nullptr) header["state"] = state_of(*resumed);
  return header.dump() + "\n";
}

std::string recording_line(const Event& event, std::span<const Action> actions) {
  return json{{"event", event}, {"actions", std::vector<Action>(actions.begin(), actions.end())}}.dump() + "\n";
}

std::string RecordingWriter::step(const Event& event, std::span<const Action> actions) {
  std::vector<Task> to;
  bool plain = event.kind == EventKind::kRows;
  for (const Action& action : actions) {
    plain =
        plain &&
        action == Action{.kind = ActionKind::kFeed, .task = action.task, .first = event.first, .count = event.count};
    to.push_back(action.task);
  }
  std::string lines;
  if (!plain || event.task != rows_of_ || to != to_) lines = flush();
  if (!plain) return lines + recording_line(event, actions);
  rows_of_ = event.task;
  to_ = std::move(to);
  runs_.emplace_back(event.first, event.count);
  return lines;
}

std::string RecordingWriter::flush() {
  if (runs_.empty()) return "";
  std::string line = json{{"rows", rows_of_}, {"to", to_}, {"runs", runs_}}.dump() + "\n";
  runs_.clear();
  return line;
}

}  // namespace collimate::graph
