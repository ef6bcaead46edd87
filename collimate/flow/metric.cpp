#include "collimate/flow/metric.h"

#include <algorithm>
#include <array>
#include <limits>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

constexpr std::array<const char*, 5> kReduceNames = {"mean", "sum", "max", "min", "last"};

Reduce parse_reduce(const std::string& name) {
  for (size_t i = 0; i < kReduceNames.size(); ++i)
    if (name == kReduceNames[i]) return static_cast<Reduce>(i);
  throw base::RunError(base::expectation("metric", "mean, sum, max, min or last", name));
}

}  // namespace

nlohmann::json Metric::to_json() const {
  nlohmann::json json = nlohmann::json::array({name, value, base::at(kReduceNames, reduce), weight});
  if (!note.empty()) json.push_back(note);
  return json;
}

Metric Metric::from_json(const nlohmann::json& json) {
  auto number = [](const nlohmann::json& j) {
    return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
  };
  return {json.at(0).get<std::string>(), number(json.at(1)), parse_reduce(json.at(2).get<std::string>()),
          number(json.at(3)), json.size() > 4 ? json.at(4).get<std::string>() : ""};
}

void MetricSet::add(const Metric& metric) {
  auto same = [&](const Entry& entry) { return entry.name == metric.name; };
  auto found = std::find_if(entries_.begin(), entries_.end(), same);
  bool mean = metric.reduce == Reduce::kMean;
  if (found == entries_.end()) {
    const double value = mean ? metric.value * metric.weight : metric.value;
    entries_.push_back({metric.name, metric.reduce, value, metric.weight, metric.note});
    return;
  }
  if (found->note.empty()) found->note = metric.note;
  found->weight += metric.weight;
  switch (found->reduce) {
    case Reduce::kMean:
      found->value += metric.value * metric.weight;
      break;
    case Reduce::kSum:
      found->value += metric.value;
      break;
    case Reduce::kMax:
      found->value = std::max(found->value, metric.value);
      break;
    case Reduce::kMin:
      found->value = std::min(found->value, metric.value);
      break;
    case Reduce::kLast:
      found->value = metric.value;
      break;
  }
}

void MetricSet::add(const std::vector<Metric>& metrics) {
  for (const Metric& metric : metrics) add(metric);
}

nlohmann::ordered_json MetricSet::values() const {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const Entry& entry : entries_)
    values[entry.name] = entry.reduce == Reduce::kMean && entry.weight != 0 ? entry.value / entry.weight : entry.value;
  return values;
}

std::map<std::string, std::string> MetricSet::notes() const {
  std::map<std::string, std::string> notes;
  for (const Entry& entry : entries_)
    if (!entry.note.empty()) notes[entry.name] = entry.note;
  return notes;
}

nlohmann::json to_json(const std::vector<Metric>& metrics) {
  nlohmann::json list = nlohmann::json::array();
  for (const Metric& metric : metrics) list.push_back(metric.to_json());
  return list;
}

std::vector<Metric> metrics_from_json(const nlohmann::json& json) {
  std::vector<Metric> metrics;
  for (const nlohmann::json& item : json) metrics.push_back(Metric::from_json(item));
  return metrics;
}

}  // namespace collimate::flow
