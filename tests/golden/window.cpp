#include "tests/golden/window.h"

#include <fmt/format.h>

#include <algorithm>

namespace collimate::golden {

bool has_norm(const json& recorded) { return recorded.contains("grad_norm") && recorded["grad_norm"].is_number(); }

std::vector<size_t> window_lengths(const json& steps, const std::vector<size_t>& micros, size_t declared) {
  std::vector<size_t> lengths;
  size_t length = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    length += micros[s];
    const bool ends = has_norm(steps[s]);
    if (!ends && s + 1 < steps.size()) continue;
    lengths.resize(s + 1, ends ? length : std::max(length, declared));
    length = 0;
  }
  return lengths;
}

void MetricLog::add(const std::map<std::string, double>& metrics) {
  for (const auto& [name, value] : metrics) {
    sums_[name].first += value;
    sums_[name].second += 1;
  }
}

void MetricLog::compare(const std::map<std::string, std::string>& names, const json& logged, size_t step,
                        Comparison& comparison) {
  std::vector<std::string> compared;
  for (const auto& [theirs, ours] : names) {
    const auto sum = sums_.find(ours);
    if (sum == sums_.end() || !logged.contains(theirs) || !logged[theirs].is_number()) continue;
    comparison.loss(fmt::format("{}, step {}", theirs, step + 1), sum->second.first / sum->second.second,
                    logged[theirs], tolerance_at(step).token);
    compared.push_back(ours);
  }
  for (const std::string& ours : compared) sums_.erase(ours);
}

}  // namespace collimate::golden
