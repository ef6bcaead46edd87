#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collimate/base/error.h"

namespace collimate::generate {

// Throws InputError, naming `where` and the first such id, if an id is outside the vocabulary.
inline void require_token_ids(std::span<const int32_t> ids, int64_t vocabulary, const std::string& where) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    throw base::InputError(
        base::expectation(where, fmt::format("token ids in [0, {})", vocabulary), fmt::to_string(id)));
  }
}

}  // namespace collimate::generate
