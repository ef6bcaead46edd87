#pragma once

#include <string>

#include "collimate/plan/layout/choices.h"

namespace collimate::plan {

// What is too large where nothing fits, for the placement of all models on all devices at their leanest.
std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table);

}  // namespace collimate::plan
