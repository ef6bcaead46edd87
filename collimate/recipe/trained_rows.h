#pragma once

#include <string>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Says how many of an evaluation's rows are trained on, as these do not show how the model does on others; "" where
// none is. Rows of one kind are compared whole (of pairs the better answer); a prompt that is completed, or a question
// with choices, with the prompts of the training.
std::string trained_rows_warning(const HeldOutRows& held, MeasureKind measured, const rlhf::RowSource& train,
                                 rlhf::RowKind trained);

}  // namespace collimate::recipe
