#pragma once

#include <vector>

#include "collimate/recipe/python_process.h"

namespace collimate::recipe {

// Takes the last buffer of an answer, which has `count` doubles, and returns these. Numbers that may be infinite or NaN
// travel so, as JSON has no word for them.
std::vector<double> last_numbers(PythonProcess::Buffers& buffers, size_t count);

}  // namespace collimate::recipe
