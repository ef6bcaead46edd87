#include "collimate/batch/element.h"

#include <array>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::batch {
namespace {

struct Fact {
  ElementType type;
  at::ScalarType scalar;
  int64_t bytes;
};
constexpr std::array<Fact, 7> kFacts = {{{ElementType::kUInt8, at::kByte, 1},
                                         {ElementType::kInt16, at::kShort, 2},
                                         {ElementType::kInt32, at::kInt, 4},
                                         {ElementType::kInt64, at::kLong, 8},
                                         {ElementType::kFloat32, at::kFloat, 4},
                                         {ElementType::kBFloat16, at::kBFloat16, 2},
                                         {ElementType::kJson, at::ScalarType::Undefined, 0}}};

const Fact& fact(ElementType type) { return base::at(kFacts, type); }

}  // namespace

at::ScalarType scalar_type(ElementType type) {
  if (type == ElementType::kJson) throw base::InputError(base::expectation("batch", "a column of numbers", "json"));
  return fact(type).scalar;
}
std::string type_name(ElementType type) { return words_of(type).name(type); }
int64_t element_bytes(ElementType type) { return fact(type).bytes; }

int64_t inner_count(const ColumnSchema& schema) {
  int64_t count = 1;
  for (int64_t size : schema.inner) count *= size;
  return count;
}

}  // namespace collimate::batch
