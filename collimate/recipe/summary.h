#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/flow/executor.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"
#include "collimate/recipe/recorder.h"

namespace collimate::recipe {

// Returns the versions of collimate, libtorch and the compiler, the instruction set that kernels use here, and the
// processor.
nlohmann::ordered_json versions();

// Holds a run and what it has come to, as its summary reads them.
struct RunSoFar {
  const Config& config;
  const Plan& plan;
  const RunData& data;
  const Recorder& recorder;
  int64_t resumed;  // iterations that were done before this process
  const flow::RunEnd& end;
  int64_t start_bytes;  // memory of the process before the run

  int64_t iterations() const { return std::max(resumed, recorder.last().step); }  // done and recorded
};

// Returns summary.json of a run that has come to its end (docs/run-directory.md).
nlohmann::ordered_json run_summary(const RunSoFar& run);

// Returns the summary's part on the exported model: the iterations behind it, and a hash of its weights, which is the
// same under any layout.
nlohmann::ordered_json exported_model(const RunSoFar& run);

// Returns stopped.json, which says why a run is not going on.
nlohmann::ordered_json why_stopped(const RunSoFar& run, const std::string& cause, int exit_code);

}  // namespace collimate::recipe
