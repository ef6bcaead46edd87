#pragma once

#include <map>
#include <optional>
#include <string>

#include "collimate/cli/plan_options.h"
#include "collimate/generate/service.h"
#include "collimate/plan/inputs/machine.h"
#include "collimate/plan/inputs/request.h"
#include "collimate/recipe/memory_of.h"

namespace collimate::cli {

// The back end's (where none is named, that of `devices`), those of the machine's file, and single ones.
collimate::plan::Constants constants_of(const PlanOptions& options, const collimate::plan::Machine& machine,
                                        const collimate::plan::Cluster& devices = {});

// The program's, and what `--device` changes or adds.
collimate::plan::DeviceKinds device_kinds_of(const PlanOptions& options);

struct PlanRequest {
  collimate::plan::Request request;
  int64_t iterations = 100;                            // of the run whose cost is asked for
  std::string lengths_key;                             // of a config (machine_file.h)
  std::optional<generate::ServiceOptions> service;     // that a config's recipe generates with
  std::map<std::string, tensor::ComputeType> compute;  // of a config's models
  int sum_chunks = 0;                                  // plan::Request::sum_chunks of the config's own devices
  int64_t memory_budget = 0;                           // MiB of a device, of a config; 0: none
  recipe::MemoryOf memory_of;                          // where there is one
};
// Reads shapes, config and cluster. InputError with the nearest valid choice for what is wrong.
PlanRequest plan_request(const PlanOptions& options);

// The part of it that a config gives: graph, shapes, adapters, rows and updates as the recipe has them; prompts and
// completions at their longest; CPU devices, of which each holds all of its models.
void read_plan_config(const PlanOptions& options, PlanRequest& made);
// Micro-batches, recomputing, rows that decode at once and the pool of keys and values as the recipe's modules have
// them; none of it where layouts are not theirs.
void use_module_settings(PlanRequest& made);
// Holds placements to the config's run.memory_budget: as its run counts, or where the options change what would run by
// the cost model's bound.
void use_memory_budget(const PlanOptions& options, PlanRequest& made);

}  // namespace collimate::cli
