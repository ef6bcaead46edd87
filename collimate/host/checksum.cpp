#include "collimate/host/checksum.h"

#include <nmmintrin.h>

#include <cstring>

namespace collimate::host {

// This uses the SSE 4.2 instruction for this polynomial. Every machine that runs Collimate has AVX2 and so has SSE 4.2.
[[gnu::target("sse4.2")]] uint32_t crc32c(std::span<const std::byte> data, uint32_t crc) {
  uint64_t state = ~crc;
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof(word) <= data.size(); i += sizeof(word)) {
    std::memcpy(&word, &data[i], sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  for (; i < data.size(); ++i) state = _mm_crc32_u8(static_cast<uint32_t>(state), static_cast<uint8_t>(data[i]));
  return ~static_cast<uint32_t>(state);
}

}  // namespace collimate::host
