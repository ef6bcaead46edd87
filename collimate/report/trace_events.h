#pragma once

#include <nlohmann/json.hpp>

#include "collimate/report/run_data.h"

namespace collimate::report {

// Fills run.trace from Chrome's trace format (an array of events, or an object with traceEvents) with the complete
// events of the last iteration that another one follows, so that a whole one is shown. Takes the only iteration where
// there is one, and all events where none names an iteration.
void read_trace(const nlohmann::ordered_json& document, RunData& run);

}  // namespace collimate::report
