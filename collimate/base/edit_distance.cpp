#include "collimate/base/edit_distance.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/lower_case.h"

namespace collimate::base {
namespace {

[[noreturn]] void throw_unknown(const std::string& where, const std::string& name,
                                const std::vector<std::string>& candidates, const std::string& other,
                                const std::string& near) {
  throw InputError(expectation(where, fmt::format("{}one of {}", other, fmt::join(candidates, ", ")), "'" + name + "'",
                               near.empty() ? "" : "'" + near + "'"));
}

}  // namespace

// This is the "optimal string alignment" distance, for which three rows of the dynamic programme are enough.
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
  constexpr size_t kWord = 4;  // letters of a word that may be the beginning of a longer name
  if (best_distance <= 1 || word.size() < kWord) return best;
  const auto longer = [begin = std::string(word) + "_"](const std::string& name) { return name.starts_with(begin); };
  const auto found = std::ranges::find_if(candidates, longer);
  return std::ranges::count_if(candidates, longer) == 1 ? *found : best;
}

std::string closest(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string wanted = lower_case(word);
  std::string best;
  std::pair<bool, size_t> least = {true, std::numeric_limits<size_t>::max()};
  for (const std::string& candidate : candidates) {
    const std::string other = lower_case(candidate);
    const bool begins = !wanted.empty() && (other.starts_with(wanted) || wanted.starts_with(other));
    const std::pair<bool, size_t> far = {!begins, edit_distance(wanted, other)};
    if (far >= least) continue;
    least = far;
    best = candidate;
  }
  return best;
}

void throw_unknown_name(const std::string& where, const std::string& name, const std::vector<std::string>& candidates,
                        const std::string& other) {
  throw_unknown(where, name, candidates, other, nearest(name, candidates));
}

void throw_unknown_choice(const std::string& where, const std::string& name, const std::vector<std::string>& candidates,
                          const std::string& other) {
  throw_unknown(where, name, candidates, other, closest(name, candidates));
}

}  // namespace collimate::base
