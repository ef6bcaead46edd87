#pragma once

#include "collimate/host/cpu.h"

// This file says how ranks of one machine wait for each other.
namespace collimate::comm {

// Returns how often a rank checks its condition, with a pause in between, before it sleeps. This is rarely when there
// are more ranks than cores, because a spin then steals a peer's core.
inline int spins_of(int ranks) { return ranks > host::core_count() ? 8 : 2000; }

}  // namespace collimate::comm
