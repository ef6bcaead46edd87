#pragma once

#include "collimate/host/cpu.h"

// How ranks of one machine wait for each other.
namespace collimate::comm {

// Looks at what is waited for, a pause apart, before a rank sleeps: few of more ranks than cores, as a spin steals a
// peer's core.
inline int spins_of(int ranks) { return ranks > host::core_count() ? 8 : 2000; }

}  // namespace collimate::comm
