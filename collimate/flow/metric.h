#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/words.h"

namespace collimate::flow {

// Reduce says how values of one metric from several calls, parts or ranks of an iteration become one number.
enum class Reduce { kMean, kSum, kMax, kMin, kLast };
constexpr auto words_of(Reduce) { return base::Words<Reduce, 5>{"reduce", {"mean", "sum", "max", "min", "last"}}; }

// A Metric is one measured number. `weight` counts for kMean only: it is the number of tokens or rows that the value is
// a mean over.
struct Metric {
  std::string name;  // as in metrics.jsonl: "actor/pg_loss"
  double value = 0.0;
  Reduce reduce = Reduce::kMean;
  double weight = 1.0;
  std::string note = {};  // UTF-8: what a person should know of the value; the first of several is kept
};

// In JSON a metric is [name, value, reduce, weight], and the note where there is one. Infinite values are the words
// "inf" and "-inf"; NaN is null in JSON's text.
void to_json(nlohmann::json& out, const Metric& metric);
void from_json(const nlohmann::json& in, Metric& metric);

// A MetricSet holds an iteration's metrics in order of first appearance. The order of `add` decides the bits of sums,
// so callers add in a fixed order.
class MetricSet {
 public:
  void add(const Metric& metric);
  void add(const std::vector<Metric>& metrics);
  // Returns name → reduced value, as an object in order of first appearance.
  nlohmann::ordered_json values() const;
  // Returns name → note for the metrics that have one.
  std::map<std::string, std::string> notes() const;
  bool empty() const { return entries_.empty(); }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::string name;
    Reduce reduce;
    double value;
    double weight;
    std::string note;
  };
  std::vector<Entry> entries_;
};

}  // namespace collimate::flow
