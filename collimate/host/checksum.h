#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace collimate::host {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4): of "123456789" it is 0xe3069283. `crc` continues an earlier part.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

}  // namespace collimate::host
