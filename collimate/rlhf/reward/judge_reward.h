#pragma once

#include <memory>

#include "collimate/rlhf/reward/remote_section.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// Makes the reward of a language model behind a server with OpenAI's interface (POST …/chat/completions), one request a
// sample. A sample fails whose request fails, whose answer has no score, and whose score is outside of the bounds.
// Throws InputError for a key that is not in the environment and, by Reward::check_columns, for rows without a column
// that the prompt names.
std::unique_ptr<Reward> judge_reward(const JudgeSection& options);

}  // namespace collimate::rlhf
