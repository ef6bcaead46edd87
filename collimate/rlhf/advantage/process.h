#pragma once

#include "collimate/rlhf/advantage/list.h"

namespace collimate::rlhf {

// "process": GRPO with process supervision (Shao et al. 2024, section 4.1.3). A token's return is what its step and the
// later ones earned, those after it discounted by gamma once per step. It is compared with the returns of the samples
// of the same prompt from the step of the same number, as "group" compares rewards, so that the two agree where every
// completion is one step; a step that no other sample reached has advantage 0. (The paper takes one mean and std over
// all steps of the group, and no discount.) InputError on a reward that is not finite, naming the row.
AdvantageEntry process_entry();

}  // namespace collimate::rlhf
