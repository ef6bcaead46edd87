#include "collimate/base/philox.h"

namespace collimate::base {
namespace {

std::array<uint32_t, 4> draw(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position) {
  return philox4x32({static_cast<uint32_t>(uid), static_cast<uint32_t>(uid >> 32), position, purpose},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// Applies the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every input bit reaches every
// output bit.
uint64_t finalise(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < Philox::kRounds; ++round) {
    const uint64_t product0 = Philox::kMultiplier0 * counter[0];
    const uint64_t product1 = Philox::kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + Philox::kWeyl0, key[1] + Philox::kWeyl1};
  }
  return counter;
}

float uniform(uint64_t seed, uint32_t purpose, uint64_t uid, uint32_t position) {
  return static_cast<float>(draw(seed, purpose, uid, position)[0] >> 8) * 0x1p-24f;
}

// Uses the two words that `uniform` does not read, so that both may be called with the same coordinates.
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
