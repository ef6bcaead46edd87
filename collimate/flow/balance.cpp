#include "collimate/flow/balance.h"

#include <algorithm>
#include <numeric>

#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

// Returns the ends of runs that cost at most `most`, each as long as possible.
std::vector<int64_t> filled(std::span<const int64_t> costs, int64_t most) {
  std::vector<int64_t> ends;
  int64_t sum = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (sum + costs[i] > most && sum > 0) {
      ends.push_back(static_cast<int64_t>(i));
      sum = 0;
    }
    sum += costs[i];
  }
  ends.push_back(std::ssize(costs));
  return ends;
}

}  // namespace

std::vector<int64_t> balanced_ends(std::span<const int64_t> costs, int64_t parts) {
  COLLIMATE_CHECK(parts > 0, "{} parts", parts);
  int64_t most = std::accumulate(costs.begin(), costs.end(), int64_t{0});
  int64_t least = costs.empty() ? 0 : *std::ranges::max_element(costs);
  while (least < most) {  // finds the smallest limit that this many runs can keep
    const int64_t middle = least + (most - least) / 2;
    if (std::ssize(filled(costs, middle)) <= parts) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  std::vector<int64_t> ends = filled(costs, most);
  ends.resize(static_cast<size_t>(parts), std::ssize(costs));
  return ends;
}

}  // namespace collimate::flow
