#pragma once

#include <memory>

#include "collimate/rlhf/reward/http_calls.h"
#include "collimate/rlhf/reward/remote_section.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// Makes the reward of a server of the user's own. A request has up to batch_samples samples; one that fails, or that is
// answered by another number of rewards, is the failure of each of its samples. null for a sample is neither a value
// nor an error. Throws InputError for a key that is not in the environment and, by Reward::check_columns, for columns
// of the data that the request has already.
std::unique_ptr<Reward> http_reward(const HttpSection& options);

// Returns where requests of an entry go: to that address, by what the entry says. Throws InputError where the variable
// with the key is not set. `kind` is the key that holds the address.
HttpTarget http_target(const RemoteSection& options, const std::string& kind, const std::string& url);

// Throws InputError, naming the option `url` of the section at `path`, where it is no address that can be asked.
void demand_url(const base::Option<std::string>& url, const std::string& path);

}  // namespace collimate::rlhf
