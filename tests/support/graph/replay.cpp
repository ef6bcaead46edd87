#include "tests/support/graph/replay.h"

#include "collimate/base/json.h"
#include "collimate/base/memory_state.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

json parse_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  json value = base::parse_json(rest.substr(0, end), "recording");
  if (!value.is_object())
    throw base::InputError(base::expectation("recording", "one JSON object a line", "something else"));
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return value;
}

// The steps of a line that holds several.
std::vector<Step> row_steps(const json& value) {
  JsonFields fields(value, "recording");
  const Task task = fields.require<Task>("rows");
  const std::vector<Task> to = fields.require<std::vector<Task>>("to");
  std::vector<Step> steps;
  for (const auto& [first, count] : fields.require<std::vector<std::pair<int64_t, int64_t>>>("runs")) {
    steps.push_back({Event::rows(task, first, count), {}});
    for (const Task& other : to)
      steps.back().actions.push_back({.kind = ActionKind::kFeed, .task = other, .first = first, .count = count});
  }
  fields.finish();
  return steps;
}

std::vector<Step> steps_from_json(const json& value) {
  if (value.contains("runs")) return row_steps(value);
  JsonFields fields(value, "recording");
  Step step{fields.require<Event>("event"), {}};
  for (const json& action : fields.require<std::vector<json>>("actions"))
    step.actions.push_back(read_json<Action>(action, "recording.actions"));
  fields.finish();
  return {step};
}

Schedule saved_and_loaded(const Schedule& schedule, Schedule fresh) {
  base::MemoryState state;
  schedule.save(state);
  fresh.load(state);
  return fresh;
}

std::string step_text(const NamedGraphs& graphs, const Step& step) {
  std::string text = "> " + describe(graphs, step.event) + "\n";
  for (const Action& action : step.actions) text += "  " + describe(graphs, action) + "\n";
  return text;
}

}  // namespace

std::vector<Step> replay(const RecordedRun& run, std::span<const Event> events, const Schedule* begin) {
  Schedule schedule = begin == nullptr ? run.schedule() : *begin;
  std::vector<Step> steps;
  for (const Event& event : events) {
    if (event.kind == EventKind::kBegin && !steps.empty()) schedule = saved_and_loaded(schedule, run.schedule());
    const std::span<const Action> actions = schedule.on(event);
    steps.push_back({event, std::vector<Action>(actions.begin(), actions.end())});
  }
  return steps;
}

std::string compare(const NamedGraphs& graphs, std::span<const Step> recorded, std::span<const Step> replayed) {
  for (size_t i = 0; i < std::max(recorded.size(), replayed.size()); ++i) {
    if (i >= recorded.size() || i >= replayed.size())
      return fmt::format("{} steps were recorded, {} replayed", recorded.size(), replayed.size());
    if (recorded[i] == replayed[i]) continue;
    return fmt::format("step {} was recorded as\n{}and replayed as\n{}", i, step_text(graphs, recorded[i]),
                       step_text(graphs, replayed[i]));
  }
  return "";
}

namespace {

RecordedRun run_of(const json& header, json& state) {
  JsonFields fields(header, "recording");
  RecordedRun run{parse(fields.require<std::string>("graph")),
                  parse_placement(fields.require<json>("placement").dump(), "recording.placement"),
                  fields.require<ScheduleOptions>("options")};
  for (const json& item : fields.get("evaluations", std::vector<json>())) {
    JsonFields of(item, "recording.evaluations");
    run.evaluations.push_back({of.require<std::string>("name"), parse(of.require<std::string>("graph")),
                               of.require<int64_t>("rows"), of.require<int64_t>("group_size"),
                               item.at("every").get<std::optional<int64_t>>(),
                               item.at("first").get<std::optional<bool>>()});
  }
  run.memory = fields.get("memory", json(DeviceMemory())).get<DeviceMemory>();
  state = fields.get("state", json());
  fields.finish();
  return run;
}

}  // namespace

std::string check_recording(std::string_view recording) {
  json state;
  const RecordedRun run = run_of(parse_line(recording), state);
  Schedule begin = run.schedule();
  if (!state.is_null()) {
    base::MemoryState saved;
    saved.json("schedule", state);
    begin.load(saved);
  }
  std::vector<Step> recorded;
  std::vector<Event> events;
  while (!recording.empty()) {
    for (Step& step : steps_from_json(parse_line(recording))) {
      events.push_back(step.event);
      recorded.push_back(std::move(step));
    }
  }
  return compare({run.graph, run.evaluations}, recorded, replay(run, events, &begin));
}

std::string trace_text(const NamedGraphs& graphs, std::span<const Step> steps) {
  std::string text;
  for (const Step& step : steps) text += step_text(graphs, step);
  return text;
}

}  // namespace collimate::graph
