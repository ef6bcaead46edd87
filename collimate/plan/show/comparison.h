#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {

// Why not `other`: that it does not fit, runs further ahead than the request allows, has layouts or micro-batches that
// the request does not, or what it loses by against the plan that was chosen; where nothing speaks against it, that.
std::string objection(const Request& request, const Plan& chosen, const Plan& other);

// A plan of a file, as it was simulated.
struct NamedPlan {
  const Plan& plan;
  const PlanSimulation& simulated;
  std::string name;
};

// A plan beside the one that was chosen: seconds of every function by cause, layouts, memory, form and the objection.
// Both are of the request's graph. Lines as those of plan_text.h.
std::string comparison_text(const Request& request, const Plan& chosen, const NamedPlan& other,
                            int columns = kTextColumns);
nlohmann::ordered_json comparison_json(const Request& request, const Plan& chosen, const NamedPlan& other);

}  // namespace collimate::plan
