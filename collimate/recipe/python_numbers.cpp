#include "collimate/recipe/python_numbers.h"

#include <cstring>

#include "collimate/base/error.h"

namespace collimate::recipe {

std::vector<double> last_numbers(PythonProcess::Buffers& buffers, size_t count) {
  COLLIMATE_CHECK(!buffers.empty() && buffers.back().size() == count * sizeof(double),
                  "an answer of {} buffers whose last has not {} numbers", buffers.size(), count);
  std::vector<double> numbers(count);
  if (count > 0) std::memcpy(numbers.data(), buffers.back().data(), count * sizeof(double));
  buffers.pop_back();
  return numbers;
}

}  // namespace collimate::recipe
