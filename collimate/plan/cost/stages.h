#pragma once

#include <vector>

#include "collimate/plan/cost/job.h"

// A layout may say how many layers each pipeline stage has, and that a rank has several stages (`virtual_stages`: its
// runs). Where it does not say the layers, all stages count as equal: the run cuts a model so that they cost about the
// same.
namespace collimate::plan {

// Returns the layers of each rank of the pipeline, in all of its runs.
std::vector<double> layers_of_ranks(const Job& job, const Execution& how);
// Returns those of the rank that `how` means, or of the one with most.
double layers_on_device(const Job& job, const Execution& how);
// Returns how many of the two ends of a model, which have the tables, the rank that `how` means has. Where it means
// none, that is two for one rank alone and one for several.
int ends_on_device(const Execution& how);
// Returns how many micro-batches' activations of all its layers the rank that `how` means keeps at most, or the first
// one: as many as there are ranks from it on. With R ranks of v runs it keeps those of 2 (R - rank - 1) + (v - 1) R + 1
// forwards through one run (train/pipeline.h).
double kept_micro_batches(const Execution& how, double micro_batches);
// Returns the part of all layers' work that a full pipeline waits for, times the number of ranks: 1 for equal ones.
double unevenness(const Job& job, const Execution& how);
// Returns how many layers a rank of `to` has at most that this rank of `from` lacks; 0 where they have different
// numbers of ranks, and a device with all of a model lacks none.
double layers_to_move(const Job& job, const Execution& from, const Execution& to);

}  // namespace collimate::plan
