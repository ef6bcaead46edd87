#pragma once

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// A row of text beside each sample, for a language-model loss in the same update (PTX): its tokens, and 1 where they
// are trained.
inline const batch::Key<int32_t> kPtxIds{.name = "ptx_ids", .ragged = true};
inline const batch::Key<uint8_t> kPtxTrainable{.name = "ptx_trainable", .ragged = true};

}  // namespace collimate::rlhf
