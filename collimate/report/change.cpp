#include "collimate/report/change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "collimate/base/metrics.h"

namespace collimate::report {

std::string Change::basis() const {
  if (count == 1) return "one iteration";
  if (part == 1) return fmt::format("first and last of {} iterations", count);
  return fmt::format("means of the first and the last {} of {} iterations", part, count);
}

bool still_falls(const std::vector<double>& losses) {
  constexpr size_t kQuarters = 4, kFewest = 12;
  constexpr double kStill = 0.05, kLearned = 0.4;  // of the first quarter's mean
  if (losses.size() < kFewest) return false;
  double means[kQuarters] = {};
  const size_t part = losses.size() / kQuarters;
  for (size_t q = 0; q < kQuarters; ++q) {
    const auto begin = losses.end() - static_cast<std::ptrdiff_t>((kQuarters - q) * part);
    means[q] = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(part), 0.0) / static_cast<double>(part);
  }
  const bool falls = means[0] > means[1] && means[1] > means[2] && means[2] > means[3];
  return falls && means[3] > kLearned * means[0] && means[2] - means[3] > kStill * means[0];
}

bool has_not_risen(const std::vector<double>& rewards) {
  const std::optional<Change> change = change_over(rewards);
  return rewards.size() >= 10 && change && change->after <= change->before;
}

std::optional<Change> change_over(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const size_t part = std::max<size_t>(1, values.size() / 10);
  const auto mean = [part](auto begin) {
    return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(part), 0.0) / static_cast<double>(part);
  };
  return Change{mean(values.begin()), mean(values.end() - static_cast<std::ptrdiff_t>(part)), part, values.size()};
}

nlohmann::ordered_json changes_in(const std::filesystem::path& metrics) {
  std::map<std::string, std::vector<double>> values;
  std::vector<std::string> unreadable;
  const std::initializer_list<const char*> names = {"actor/loss", "critic/rewards/mean", "actor/reward_kl_penalty",
                                                    "response_length/mean"};
  base::for_each_metrics(metrics, &unreadable, [&](const base::MetricsRecord& record) {
    for (const char* name : names)
      if (const double* value = record.find(name); value != nullptr && std::isfinite(*value))
        values[name].push_back(*value);
  });
  nlohmann::ordered_json changes = nlohmann::ordered_json::object();
  for (const char* name : names)
    if (const auto change = change_over(values[name]))
      changes[name] = {{"before", change->before}, {"after", change->after}};
  return changes;
}

}  // namespace collimate::report
