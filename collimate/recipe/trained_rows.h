#pragma once

#include <string>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Says how many of an evaluation's rows are trained on too, as these do not show how the model does on others; "" where
// none is. Where both are rows of one kind they are compared whole (of pairs the row with the better answer).
// Otherwise, as for a prompt that is completed or a question with choices, their prompts are compared.
std::string trained_rows_warning(const HeldOutRows& held, MeasureKind measured, const rlhf::RowSource& train,
                                 rlhf::RowKind trained);

}  // namespace collimate::recipe
