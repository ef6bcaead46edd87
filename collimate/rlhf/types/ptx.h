#pragma once

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// Each sample brings a row of text for a language-model loss in the same update (PTX): the tokens of the text, and 1
// where a token is trained.
inline const batch::Key<int32_t> kPtxIds{.name = "ptx_ids", .ragged = true};
inline const batch::Key<uint8_t> kPtxTrainable{.name = "ptx_trainable", .ragged = true};

}  // namespace collimate::rlhf
