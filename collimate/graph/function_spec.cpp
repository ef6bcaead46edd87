#include "collimate/graph/function_spec.h"

#include "collimate/graph/json_fields.h"

namespace collimate::graph {

Column::Column(std::string_view text) : name(text.substr(0, text.find(':'))) {
  if (size_t colon = text.find(':'); colon != std::string_view::npos) type = text.substr(colon + 1);
}

void to_json(nlohmann::json& out, const Column& column) { out = column.text(); }
void from_json(const nlohmann::json& in, Column& column) { column = Column(in.get<std::string>()); }

FunctionSpec function_spec_from_json(const nlohmann::json& json) {
  return read_json<FunctionSpec>(json, "function " + JsonFields(json, "function").require<std::string>("name"));
}

}  // namespace collimate::graph
