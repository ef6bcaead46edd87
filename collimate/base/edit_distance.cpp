#include "collimate/base/edit_distance.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "collimate/base/error.h"

namespace collimate::base {

// The "optimal string alignment" distance: three rows of the dynamic programme are enough.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

void throw_unknown_name(const std::string& where, const std::string& name, const std::vector<std::string>& candidates,
                        const std::string& other) {
  const std::string near = nearest(name, candidates);
  throw InputError(expectation(where, fmt::format("{}one of {}", other, fmt::join(candidates, ", ")), "'" + name + "'",
                               near.empty() ? "" : "'" + near + "'"));
}

}  // namespace collimate::base
