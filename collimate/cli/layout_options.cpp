#include "collimate/cli/layout_options.h"

#include "collimate/base/error.h"
#include "collimate/host/base_model.h"
#include "collimate/recipe/placement.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/model_shape.h"

namespace collimate::cli {
namespace {

void require_experts(const shape::ModelShape& shape, int ep) {
  const shape::Experts* experts = shape::experts_of(shape);
  if (experts == nullptr)
    throw base::InputError(
        base::expectation("ep", "1 of a model without experts", std::to_string(ep), "tp, pp or leaving it out"));
  if (experts->count < ep)
    throw base::InputError(base::expectation("ep", fmt::format("at most the {} experts", experts->count),
                                             std::to_string(ep), "a smaller ep"));
}

}  // namespace

graph::Layout LayoutOptions::layout(const std::string& directory) const {
  const auto size = [](const base::Option<int64_t>& option) { return static_cast<int>(option.get()); };
  graph::Layout made{.tp = size(tp), .pp = size(pp), .ep = size(ep)};
  recipe::require_divisors(size(devices), {{"tp", made.tp}, {"pp", made.pp}, {"ep", made.ep}});
  if (made.ep > 1) require_experts(shape::read_model_shape(host::base_directory(directory)), made.ep);
  made.dp = size(devices) / (made.tp * made.pp);
  return made;
}

int64_t LayoutOptions::sum_parts() const { return recipe::sum_parts(reduction_chunks, static_cast<int>(tp.get())); }

nlohmann::json ScoringLayoutOptions::config() const {
  return {{"devices", devices.get()}, {"tp", tp.get()}, {"pp", pp.get()},     {"cp", cp.get()},
          {"cp_kind", cp_kind.get()}, {"ep", ep.get()}, {"zero", zero.get()}, {"cluster", cluster.get()}};
}

}  // namespace collimate::cli
