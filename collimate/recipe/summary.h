#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/flow/executor.h"
#include "collimate/recipe/learning_watch.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// collimate, libtorch, compiler, the instruction set that kernels use here, and the processor.
nlohmann::ordered_json versions();

// The present second, as "2026-11-24T19:36:22Z".
std::string now_utc();

// A run's report says these: which rewards ran without a sandbox, and what the watch has seen.
std::vector<std::string> run_warnings(const Plan& plan, const LearningWatch& watch);

// Says what a run's workers took of memory beside what was planned: {"process_start_bytes", "process_peak_bytes",
// "planned_bytes", "peak_bytes", "workers": [MemoryLedger::report]}; sums over the workers of devices and hosts.
nlohmann::ordered_json memory_summary(const flow::RunEnd& end, int64_t process_start_bytes);

}  // namespace collimate::recipe
