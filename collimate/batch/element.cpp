#include "collimate/batch/element.h"

#include <array>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::batch {
namespace {

struct Fact {
  ElementType type;
  const char* name;
  at::ScalarType scalar;
  int64_t bytes;
};
constexpr std::array<Fact, 6> kFacts = {{{ElementType::kUInt8, "uint8", at::kByte, 1},
                                         {ElementType::kInt32, "int32", at::kInt, 4},
                                         {ElementType::kInt64, "int64", at::kLong, 8},
                                         {ElementType::kFloat32, "float32", at::kFloat, 4},
                                         {ElementType::kBFloat16, "bfloat16", at::kBFloat16, 2},
                                         {ElementType::kJson, "json", at::ScalarType::Undefined, 0}}};

const Fact& fact(ElementType type) { return base::at(kFacts, type); }

}  // namespace

at::ScalarType scalar_type(ElementType type) {
  if (type == ElementType::kJson) throw base::InputError(base::expectation("batch", "a column of numbers", "json"));
  return fact(type).scalar;
}
const char* type_name(ElementType type) { return fact(type).name; }
int64_t element_bytes(ElementType type) { return fact(type).bytes; }

ElementType parse_type(const std::string& name) {
  for (const Fact& f : kFacts)
    if (name == f.name) return f.type;
  throw base::InputError(
      base::expectation("batch", "uint8, int32, int64, float32, bfloat16 or json", "\"" + name + "\""));
}

int64_t inner_count(const ColumnSchema& schema) {
  int64_t count = 1;
  for (int64_t size : schema.inner) count *= size;
  return count;
}

nlohmann::json ColumnSchema::to_json() const {
  return {{"name", name},     {"type", type_name(type)}, {"inner", inner},
          {"ragged", ragged}, {"padding", padding},      {"side", side == PadSide::kLeft ? "left" : "right"}};
}

ColumnSchema ColumnSchema::from_json(const nlohmann::json& json) {
  return {json.at("name"),   parse_type(json.at("type")), json.at("inner").get<std::vector<int64_t>>(),
          json.at("ragged"), json.at("padding"),          json.at("side") == "left" ? PadSide::kLeft : PadSide::kRight};
}

}  // namespace collimate::batch
