#pragma once

#include "collimate/batch/key.h"

namespace collimate::batch {

// A row that ends in padding, which the model reads like other tokens, has so many tokens ahead of the padding. The
// score at its last token (Quantities::row_scores) is that of the last one of these.
inline const Key<int64_t> kUnpaddedTokens{"unpadded_tokens"};

}  // namespace collimate::batch
