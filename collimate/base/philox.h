#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace collimate::base {

// Philox holds the constants and the number of rounds of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3" (SC 2011).
struct Philox {
  static constexpr uint64_t kMultiplier0 = 0xD2511F53;
  static constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  static constexpr uint32_t kWeyl0 = 0x9E3779B9;
  static constexpr uint32_t kWeyl1 = 0xBB67AE85;
  static constexpr int kRounds = 10;
};

// Computes Philox4x32-10 (Salmon et al. 2011), a counter-based generator, so that a draw depends on its key and counter
// alone.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Returns one uniform number in [0, 1) with 24 random bits for (run seed, purpose, uid, position). Equal arguments give
// equal draws.
float uniform(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position);

// Returns 64 random bits for such coordinates. Shuffles and initial weights use it.
uint64_t random_bits(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position);

// Returns FNV-1a of the text followed by a finaliser, which is stable over runs and machines. Uids and purposes come
// from it.
uint64_t stable_hash(std::string_view text, uint64_t basis = 0xcbf29ce484222325ULL);
uint64_t mix(uint64_t a, uint64_t b);

}  // namespace collimate::base
