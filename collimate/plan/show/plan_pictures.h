#pragma once

#include <string>

#include "collimate/plan/simulate/timeline.h"

namespace collimate::plan {

// These are pictures of a plan for its page, as <figure> with a legend, in the colours of base::html_palette().

// Draws what each device does in a period, over seconds.
std::string timeline_figure(const Plan& plan, const Timeline& timeline);
// Draws what each device holds when it holds most, over GB, up to what is usable.
std::string memory_figure(const Request& request, const Plan& plan);

}  // namespace collimate::plan
