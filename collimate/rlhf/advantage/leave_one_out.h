#pragma once

#include "collimate/rlhf/advantage/list.h"

namespace collimate::rlhf {

// "rloo" (Ahmadian et al. 2024): reward less the mean reward of the prompt's other samples; 0 for a group of one.
AdvantageEntry leave_one_out_entry();

}  // namespace collimate::rlhf
