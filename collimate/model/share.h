#pragma once

#include "collimate/shape/share.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {

using shape::Share;
using shape::share_of;

// Shares begin at chunks of the gradient's norm, which so has the same bits however many ranks share the gradient.
static_assert(shape::kShareChunk == tensor::kSquaresChunk);

}  // namespace collimate::model
