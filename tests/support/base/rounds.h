#pragma once

namespace collimate::base {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// How often a test draws at random, or how many slopes it compares. A sanitizer, under which code takes ten times as
// long, looks at how memory and threads are used, which is the same in each round, and not at numbers: there it is a
// quarter of the rounds.
constexpr int rounds(int all) { return kThreadSanitizer || kAddressSanitizer ? (all + 3) / 4 : all; }

}  // namespace collimate::base
