#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/fields.h"

namespace collimate::flow {

// A WorkerModule says how a worker makes a model's module (ModuleChoice).
struct WorkerModule {
  std::string kind;
  nlohmann::json parameters = nlohmann::json::object();
  bool in_place = false;

  COLLIMATE_FIELDS(kind, parameters, in_place)
};

// WorkerOptions is what the driver tells every worker beside config, graph and placement: the JSON of
// cluster::WorkerSpec::options.
struct WorkerOptions {
  uint64_t seed = 0;
  std::string run;                                  // a name that no other run on the machine has
  std::map<std::string, WorkerModule> modules;      // by model; an absent model has the kind of its name
  nlohmann::json calls = nlohmann::json::object();  // calls_of (planned_memory.h)
  std::string back_end, group_store;                // of collectives
  int threads_per_worker = 1;                       // of workers on devices; other workers have one thread
  int64_t memory_budget_bytes = 0;                  // 0: none
  std::string swap_directory;
  bool times_operations = false;
  double deadline_seconds = 600;

  COLLIMATE_FIELDS(seed, run, modules, calls, back_end, group_store, threads_per_worker, memory_budget_bytes,
                   swap_directory, times_operations, deadline_seconds)
};

}  // namespace collimate::flow
