#pragma once

#include <string>
#include <string_view>

namespace collimate::report {

// Says what the phase of timing_s/<phase> and memory/peak_bytes/<phase> does, as "generating completions"; returns the
// phase's own name where it is none that a recipe has.
std::string phase_words(std::string_view phase);

// Says what a measure of a sample means, as "log-prob per token" for "log_prob".
std::string measure_words(std::string_view measure);

}  // namespace collimate::report
