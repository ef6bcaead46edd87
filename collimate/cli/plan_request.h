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

// Returns the constants of the back end (if none is named, of the own CPU back end where `devices` has CPUs),
// overridden by those of the machine's file, and these by single ones (--constant).
collimate::plan::Constants constants_of(const PlanOptions& options, const collimate::plan::Machine& machine,
                                        const collimate::plan::Cluster& devices = {});

// Returns the program's table of device kinds with what `--device` changes or adds.
collimate::plan::DeviceKinds device_kinds_of(const PlanOptions& options);

struct PlanRequest {
  collimate::plan::Request request;
  int64_t iterations = 100;                            // of the run whose cost is asked for
  std::string lengths_key;                             // the config's (machine_file.h)
  std::optional<generate::ServiceOptions> service;     // with which a config's recipe generates; empty: it does not
  std::map<std::string, tensor::ComputeType> compute;  // of a config's models
  int64_t memory_budget = 0;                           // a config's, in MiB for each device; 0: none
  recipe::MemoryOf memory_of;                          // set where there is a budget and the models' files exist
};
// Reads shapes, config and cluster. Throws InputError that names the nearest valid choice.
PlanRequest plan_request(const PlanOptions& options);

// Fills in what a config says: graph, shapes, adapters, rows and updates of the recipe; prompts and completions at
// their longest; as many CPU devices as the config has, each of which holds its models whole.
void read_plan_config(const PlanOptions& options, PlanRequest& made);
// Fills in the settings of the recipe's modules that generate: rows that decode at once and the size of the key-value
// cache. If layouts are not limited to whole models, drops the recipe's settings instead, with micro-batches,
// recomputing and offloading.
void use_module_settings(PlanRequest& made);
// Limits placements to the config's run.memory_budget. The memory is counted as the run itself counts it, or, if the
// options change what would run, by the cost model's bound.
void use_memory_budget(const PlanOptions& options, PlanRequest& made);

}  // namespace collimate::cli
