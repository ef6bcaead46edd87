#pragma once

#include <string>

#include "collimate/plan/layout/choices.h"

namespace collimate::plan {

// Says what is too large where nothing fits: a function that does not fit by itself on any of device_counts(), else all
// models together on the most devices on which each fits, with the layouts that need least.
std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table);

}  // namespace collimate::plan
