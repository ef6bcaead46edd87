#include "collimate/graph/replay.h"

#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

json parse_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  json value = json::parse(rest.substr(0, end), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object())
    throw base::InputError(base::expectation("recording", "one JSON object a line", "something else"));
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return value;
}

Step step_from_json(const json& value) {
  JsonFields fields(value, "recording");
  Step step{event_from_json(fields.require<json>("event")), {}};
  for (const json& action : fields.require<std::vector<json>>("actions"))
    step.actions.push_back(action_from_json(action));
  fields.finish();
  return step;
}

std::string step_text(const Graph& graph, const Step& step) {
  std::string text = "> " + describe(graph, step.event) + "\n";
  for (const Action& action : step.actions) text += "  " + describe(graph, action) + "\n";
  return text;
}

}  // namespace

std::vector<Step> replay(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                         std::span<const Event> events) {
  Schedule schedule(graph, placement, options);
  std::vector<Step> steps;
  for (const Event& event : events) {
    const std::span<const Action> actions = schedule.on(event);
    steps.push_back({event, std::vector<Action>(actions.begin(), actions.end())});
  }
  return steps;
}

std::string compare(const Graph& graph, std::span<const Step> recorded, std::span<const Step> replayed) {
  for (size_t i = 0; i < std::max(recorded.size(), replayed.size()); ++i) {
    if (i >= recorded.size() || i >= replayed.size())
      return fmt::format("{} steps were recorded, {} replayed", recorded.size(), replayed.size());
    if (recorded[i] == replayed[i]) continue;
    return fmt::format("step {} was recorded as\n{}and replayed as\n{}", i, step_text(graph, recorded[i]),
                       step_text(graph, replayed[i]));
  }
  return "";
}

std::string recording_header(const Graph& graph, const Placement& placement, const ScheduleOptions& options) {
  return json{{"graph", text(graph)}, {"placement", to_json(placement)}, {"options", to_json(options)}}.dump() + "\n";
}

std::string recording_line(const Event& event, std::span<const Action> actions) {
  json list = json::array();
  for (const Action& action : actions) list.push_back(to_json(action));
  return json{{"event", to_json(event)}, {"actions", list}}.dump() + "\n";
}

std::string check_recording(std::string_view recording) {
  const json header = parse_line(recording);
  JsonFields fields(header, "recording");
  const Graph graph = parse(fields.require<std::string>("graph"));
  const Placement placement = parse_placement(fields.require<json>("placement").dump(), "recording.placement");
  const ScheduleOptions options = schedule_options_from_json(fields.require<json>("options"));
  fields.finish();
  std::vector<Step> recorded;
  std::vector<Event> events;
  while (!recording.empty()) {
    recorded.push_back(step_from_json(parse_line(recording)));
    events.push_back(recorded.back().event);
  }
  return compare(graph, recorded, replay(graph, placement, options, events));
}

std::string trace_text(const Graph& graph, std::span<const Step> steps) {
  std::string text;
  for (const Step& step : steps) text += step_text(graph, step);
  return text;
}

}  // namespace collimate::graph
