#include "collimate/flow/metric.h"

#include <algorithm>
#include <cmath>

namespace collimate::flow {
namespace {

nlohmann::json written_number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double read_number(const nlohmann::json& in) {
  if (in.is_null()) return NAN;
  if (in == "inf") return INFINITY;
  if (in == "-inf") return -INFINITY;
  return in.get<double>();
}

}  // namespace

void to_json(nlohmann::json& out, const Metric& metric) {
  out = {metric.name, written_number(metric.value), metric.reduce, written_number(metric.weight)};
  if (!metric.note.empty()) out.push_back(metric.note);
}

void from_json(const nlohmann::json& in, Metric& metric) {
  metric = {in.at(0), read_number(in.at(1)), in.at(2).get<Reduce>(), read_number(in.at(3))};
  if (in.size() > 4) in.at(4).get_to(metric.note);
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

}  // namespace collimate::flow
