#pragma once

#include <memory>

#include "collimate/rlhf/reward/reward.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {

// Returns a reward that calls a Python function, score(prompts, completions, **columns) -> list[float | None] or verl's
// compute_score, in a worker process of its own, over pipes. A call that takes longer
// than the time limit of one sample is killed with its process group. The samples of such a call, and of one that
// raises, are then scored one by one, so that only those that hang or raise fail. The first exception is logged, and
// the first 256 KiB that each call prints. The process runs in a sandbox (host/sandbox.h) unless the section says
// otherwise, of which a warning tells. None for a sample is neither a value nor an error. If a call gives another
// number of rewards than it has samples, each sample fails. Throws InputError, with Python's own message, when the file
// cannot be imported, and for columns of the data that have reserved names (refuse_reserved).
std::unique_ptr<Reward> python_reward(const PythonSection& options);

}  // namespace collimate::rlhf
