#include "collimate/recipe/placement_context.h"

#include <string>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/config.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/shape/context_heads.h"

namespace collimate::recipe {
namespace {

// Checks that the tensor ranks' parts of a model have heads for all context ranks.
void check_heads(const std::string& where, const std::string& model, const graph::Layout& layout, const Plan& plan) {
  const auto module = plan.modules.find(model);
  if (module == plan.modules.end() || !module->second.parameters.contains("weights")) return;
  rlhf::DecoderOptions options;
  base::apply(module->second.parameters, "models", options);
  shape::require_context_heads(rlhf::own_shape(options, {.tensor = {{}, {0, layout.tp}}}), layout.cp, where);
}

}  // namespace

void check_context(const Config& config, const graph::Placement& placement, const Plan& plan) {
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) {
      if (layout.cp == 1) continue;
      const std::string of_function = fmt::format("placement.layouts.{}.{}.", model, function);
      if (!rlhf::shares_tokens(*plan.graph.find_function(model, function)))
        throw base::InputError(base::expectation(of_function + "cp", "1 of a function that generates",
                                                 std::to_string(layout.cp),
                                                 "leaving it out: each of its devices then has rows of its own"));
      if (layout.cp_kind == shape::ContextKind::kUlysses)
        check_heads(config.placement.get() == "flattening" ? "cp" : of_function + "cp", model, layout, plan);
    }
}

}  // namespace collimate::recipe
