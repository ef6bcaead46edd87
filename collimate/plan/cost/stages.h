#pragma once

#include <vector>

#include "collimate/plan/cost/job.h"

// A layout may say how many layers each pipeline stage has. Where it does not, all stages count as equal: the run cuts
// a model so that they cost about the same.
namespace collimate::plan {

// Returns the layers of each stage.
std::vector<double> layers_of_stages(const Job& job, const Execution& how);
// Returns those of the stage that `how` means, or of the one with most.
double layers_on_device(const Job& job, const Execution& how);
// Returns how many of the two ends of a model, which have the tables, the stage that `how` means is. Where it means
// none, that is two for one stage alone and one for several.
int ends_on_device(const Execution& how);
// Returns the part of all layers' work that a full pipeline waits for, times the number of stages: 1 for equal stages.
double unevenness(const Job& job, const Execution& how);
// Returns how many layers a stage of `to` has at most that this stage of `from` lacks; 0 where they have different
// numbers of stages, and a device with all of a model lacks none.
double layers_to_move(const Job& job, const Execution& from, const Execution& to);

}  // namespace collimate::plan
