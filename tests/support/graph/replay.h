#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/graph/recording.h"

namespace collimate::graph {

// Drives a fresh Schedule, or `begin`, with the events; a later Begin is preceded by saving and loading it.
std::vector<Step> replay(const RecordedRun& run, std::span<const Event> events, const Schedule* begin = nullptr);

// The first difference between recorded steps and their replay, as text; empty when there is none.
std::string compare(const NamedGraphs& graphs, std::span<const Step> recorded, std::span<const Step> replayed);

// Parses a recording, replays its events, compares. Empty when equal; InputError when it cannot be read.
std::string check_recording(std::string_view recording);

// The readable text trace: "> event" then "  action" lines.
std::string trace_text(const NamedGraphs& graphs, std::span<const Step> steps);

}  // namespace collimate::graph
