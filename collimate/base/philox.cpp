#include "collimate/base/philox.h"

namespace collimate::base {
namespace {

// Constants and round count of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

std::array<uint32_t, 4> draw(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position) {
  return philox4x32({static_cast<uint32_t>(uid), static_cast<uint32_t>(uid >> 32), position, purpose},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every input bit reaches every output bit.
uint64_t finalise(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

float uniform(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position) {
  return static_cast<float>(draw(seed, purpose, uid, position)[0] >> 8) * 0x1p-24f;
}

// The two words that `uniform` does not read, so that both may be used at the same coordinates.
uint64_t random_bits(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position) {
  const auto words = draw(seed, purpose, uid, position);
  return static_cast<uint64_t>(words[3]) << 32 | words[2];
}

uint64_t stable_hash(std::string_view text, uint64_t basis) {
  uint64_t hash = basis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return finalise(hash);
}

uint64_t mix(uint64_t a, uint64_t b) {
  return finalise(finalise(a + 0x9e3779b97f4a7c15ULL) ^ (b * 0xd6e8feb86659fd93ULL));
}

}  // namespace collimate::base
