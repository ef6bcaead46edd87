#pragma once

#include <string>

#include "collimate/plan/layout/choices.h"

namespace collimate::plan {

// Says what is too large where nothing fits: names a function that does not fit by itself, if there is one on each of
// device_counts(), or says what all models need together, with their leanest layouts, on the most devices on which each
// of them fits.
std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table);

}  // namespace collimate::plan
