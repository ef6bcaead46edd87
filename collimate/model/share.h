#pragma once

#include "collimate/shape/share.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {

using shape::Share;
using shape::share_of;

// So that the gradient's norm has the same bits however many ranks share it.
static_assert(shape::kShareChunk == tensor::kSquaresChunk);

}  // namespace collimate::model
