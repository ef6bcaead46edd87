#pragma once

#include <cstdint>
#include <memory>

#include "collimate/flow/module.h"

namespace collimate::rlhf {

// Returns the module of the host function "keep" of sample groups that are drawn in rounds. It lets pass what part_rows
// gives for `min_samples`; the other rows are dropped from the iteration, without others in their place.
std::unique_ptr<flow::Module> finished_samples_module(int64_t min_samples);

}  // namespace collimate::rlhf
