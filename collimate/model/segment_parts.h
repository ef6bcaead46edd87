#pragma once

#include <span>
#include <vector>

#include "collimate/base/tensor_part.h"
#include "collimate/model/share.h"
#include "collimate/shape/param_spec.h"

namespace collimate::model {

// Returns the parts of parameters that lie in a share of a rank's segment, for a state that can be read under any
// layout: they are boxes of whole parameters, also where the rank has pieces of them (shape::local). Offsets count from
// the share's begin; padding belongs to no part.
std::vector<base::TensorPart> parts_of(std::span<const shape::ParamSpec> specs, int segment, const Share& share);

}  // namespace collimate::model
