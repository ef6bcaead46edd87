#pragma once

#include <string>

#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {

// Makes one self-contained page with the best plan's timeline, seconds by cause, memory by item, cost, and runner-ups.
// Nothing is fetched, and no script is needed to read it.
std::string search_html(const Request& request, const SearchResult& result, int64_t iterations);

}  // namespace collimate::plan
