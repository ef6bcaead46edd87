#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {

// Says why `other` was not chosen: it does not fit, runs further ahead than the request allows, has layouts or
// micro-batches that the request does not allow, or loses time by something against the chosen plan. Says so where
// nothing speaks against it.
std::string objection(const Request& request, const Plan& chosen, const Plan& other);

// A NamedPlan is a plan of a file with its simulation.
struct NamedPlan {
  const Plan& plan;
  const PlanSimulation& simulated;
  std::string name;
};

// Shows a plan beside the chosen one: seconds of every function by cause, layouts, memory, form and the objection. Both
// are plans of the request's graph. Lines are as those of plan_text.h.
std::string comparison_text(const Request& request, const Plan& chosen, const NamedPlan& other,
                            int columns = kTextColumns);
nlohmann::ordered_json comparison_json(const Request& request, const Plan& chosen, const NamedPlan& other);

}  // namespace collimate::plan
