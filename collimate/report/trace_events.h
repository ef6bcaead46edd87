#pragma once

#include <nlohmann/json.hpp>

#include "collimate/report/run_data.h"

namespace collimate::report {

// Fills run.trace from Chrome's trace format (an array of events, or an object with traceEvents): the complete events
// of the last iteration that is followed by another, so that a whole one is shown; all events where none names one.
void read_trace(const nlohmann::ordered_json& document, RunData& run);

}  // namespace collimate::report
