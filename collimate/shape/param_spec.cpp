#include "collimate/shape/param_spec.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/shape/family.h"
#include "collimate/shape/spec_builder.h"

namespace collimate::shape {

int64_t ParamSpec::count() const {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

std::vector<ParamSpec> param_specs(const ModelShape& shape) {
  return find_family(shape.family, "model family").specs(shape);
}

std::span<const ParamSpec> fused_layer(std::span<const ParamSpec> specs, int64_t first) {
  const auto begin = static_cast<size_t>(first);
  return specs.subspan(begin, static_cast<size_t>(specs[begin].fused));
}

int64_t fused_rows(std::span<const ParamSpec> specs, int64_t first) {
  int64_t rows = 0;
  for (const ParamSpec& spec : fused_layer(specs, first)) rows += spec.sizes[0];
  return rows;
}

bool is_linear(const ModelShape& shape, const std::vector<ParamSpec>& specs, size_t index) {
  const bool tied_head = index == 0 && shape.tied_embeddings && shape.head == Head::kLanguageModel;
  return tied_head || specs[index].kind == ParamKind::kLinear;
}

std::vector<int64_t> segment_floats(const std::vector<ParamSpec>& specs) {
  std::vector<int64_t> floats;
  for (const ParamSpec& spec : specs) {
    floats.resize(std::max<size_t>(floats.size(), static_cast<size_t>(spec.segment) + 1));
    base::at(floats, spec.segment) = padded(spec.offset + spec.count());
  }
  return floats;
}

}  // namespace collimate::shape
