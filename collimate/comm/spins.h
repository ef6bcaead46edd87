#pragma once

#include <cstddef>

#include "collimate/host/cpu.h"

// How ranks of one machine wait for each other.
namespace collimate::comm {

// A sum of at most so many floats is made whole by every rank, in place of a second meeting.
inline constexpr size_t kSmallFloats = 512;

// Looks at what is waited for, a pause apart, before a rank sleeps: few of more ranks than cores, as a spin steals a
// peer's core.
inline int spins_of(int ranks) { return ranks > host::core_count() ? 8 : 2000; }

}  // namespace collimate::comm
