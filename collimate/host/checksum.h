#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace collimate::host {

// Returns the CRC-32C (Castagnoli, RFC 3720 appendix B.4), which is 0xe3069283 for "123456789". `crc` is the result for
// an earlier part that `data` continues.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

}  // namespace collimate::host
