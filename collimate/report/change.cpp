#include "collimate/report/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace collimate::report {

std::string Change::basis() const {
  if (count == 1) return "one iteration";
  if (part == 1) return fmt::format("first and last of {} iterations", count);
  return fmt::format("means of the first and the last {} of {} iterations", part, count);
}

std::optional<Change> change_over(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const size_t part = std::max<size_t>(1, values.size() / 10);
  const auto mean = [part](auto begin) {
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(part), 0.0) / static_cast<double>(part);
  };
  return Change{mean(values.begin()), mean(values.end() - static_cast<std::ptrdiff_t>(part)), part, values.size()};
}

}  // namespace collimate::report
