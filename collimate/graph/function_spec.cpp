#include "collimate/graph/function_spec.h"

#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

constexpr Words<Kind, 4> kKinds{"kind", {"generate", "score", "train", "host"}};
constexpr Words<Granularity, 3> kGranularities{"granularity", {"row", "group", "iteration"}};
constexpr Words<Dispatch, 3> kDispatches{"dispatch", {"split", "broadcast", "whole"}};
constexpr Words<Collect, 3> kCollects{"collect", {"concat", "first", "none"}};

std::vector<std::string> texts(const std::vector<Column>& columns) {
  std::vector<std::string> made;
  for (const Column& column : columns) made.push_back(column.text());
  return made;
}

std::vector<Column> columns(const std::vector<std::string>& names) {
  return std::vector<Column>(names.begin(), names.end());
}

Cost cost_from_json(const nlohmann::json* json, const std::string& where) {
  Cost cost;
  if (json == nullptr) return cost;
  JsonFields fields(*json, where + ".cost");
  cost.forward_passes = fields.get("forward_passes", cost.forward_passes);
  cost.backward_passes = fields.get("backward_passes", cost.backward_passes);
  cost.columns = fields.get("columns", cost.columns);
  cost.seconds_per_row = fields.get("seconds_per_row", cost.seconds_per_row);
  fields.finish();
  return cost;
}

}  // namespace

Column::Column(std::string_view text) : name(text.substr(0, text.find(':'))) {
  if (size_t colon = text.find(':'); colon != std::string_view::npos) type = text.substr(colon + 1);
}

nlohmann::json to_json(const FunctionSpec& spec) {
  return {{"name", spec.name},
          {"kind", kKinds.name(spec.kind)},
          {"needs", texts(spec.needs)},
          {"makes", texts(spec.makes)},
          {"granularity", kGranularities.name(spec.granularity)},
          {"dispatch", kDispatches.name(spec.dispatch)},
          {"collect", kCollects.name(spec.collect)},
          {"streams", spec.streams},
          {"writes_weights", spec.writes_weights},
          {"drops_rows", spec.drops_rows},
          {"deterministic", spec.deterministic},
          {"retry_safe", spec.retry_safe},
          {"cost",
           {{"forward_passes", spec.cost.forward_passes},
            {"backward_passes", spec.cost.backward_passes},
            {"columns", spec.cost.columns},
            {"seconds_per_row", spec.cost.seconds_per_row}}}};
}

FunctionSpec function_spec_from_json(const nlohmann::json& json) {
  FunctionSpec spec;
  spec.name = JsonFields(json, "function").require<std::string>("name");
  JsonFields fields(json, "function " + spec.name);
  fields.find("name");
  auto words = [&](const char* key, auto& list, auto& value) {
    if (const nlohmann::json* found = fields.find(key))
      value = list.parse(fields.where() + "." + key, found->is_string() ? found->get<std::string>() : found->dump());
  };
  words("kind", kKinds, spec.kind);
  words("granularity", kGranularities, spec.granularity);
  words("dispatch", kDispatches, spec.dispatch);
  words("collect", kCollects, spec.collect);
  spec.needs = columns(fields.get<std::vector<std::string>>("needs", {}));
  spec.makes = columns(fields.get<std::vector<std::string>>("makes", {}));
  spec.streams = fields.get("streams", spec.streams);
  spec.writes_weights = fields.get("writes_weights", spec.writes_weights);
  spec.drops_rows = fields.get("drops_rows", spec.drops_rows);
  spec.deterministic = fields.get("deterministic", spec.deterministic);
  spec.retry_safe = fields.get("retry_safe", spec.retry_safe);
  spec.cost = cost_from_json(fields.find("cost"), fields.where());
  fields.finish();
  return spec;
}

}  // namespace collimate::graph
