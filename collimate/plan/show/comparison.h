#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {

// Why not `other`: that it does not fit, runs further ahead than the request allows, has layouts or micro-batches that
// the request does not, or what it loses by against the plan that was chosen; where nothing speaks against it, that.
std::string objection(const Request& request, const Plan& chosen, const Plan& other);

// `other`, named `name`, beside the plan that was chosen: seconds of every function by cause, layouts, memory, form and
// the objection. Both plans are of the request's graph and have been simulated, `other` as `simulated`.
std::string comparison_text(const Request& request, const Plan& chosen, const Plan& other,
                            const PlanSimulation& simulated, const std::string& name);
nlohmann::ordered_json comparison_json(const Request& request, const Plan& chosen, const Plan& other,
                                       const PlanSimulation& simulated, const std::string& name);

}  // namespace collimate::plan
