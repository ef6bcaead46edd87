#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collimate/base/immovable.h"

namespace collimate::base {

// A MetricsRecord holds the numbers that one iteration reports: names in verl's style ("actor/pg_loss") in the order in
// which they were first set.
struct MetricsRecord {
  int64_t step = 0;
  double time_seconds = 0;  // since the run began
  std::vector<std::pair<std::string, double>> values;

  void set(std::string_view name, double value);
  const double* find(std::string_view name) const;
};

// Returns TRL's name of a metric, which a run with `log.names: trl` writes, or "" where TRL has none.
std::string_view trl_name(std::string_view name);

// Returns one line of metrics.jsonl: `step` and `time_seconds` come first. A value that is not finite is null, and the
// list `nonfinite` has "name=nan", "name=inf" or "name=-inf" for it.
std::string to_json_line(const MetricsRecord& record);
// Reads a line that to_json_line wrote. Throws InputError that names `where`.
MetricsRecord parse_metrics_line(const std::string& line, const std::string& where = "metrics");
// Inside other JSON a record is the text of its line.
void to_json(auto& out, const MetricsRecord& record) { out = to_json_line(record); }
void from_json(const auto& in, MetricsRecord& record) { record = parse_metrics_line(in.template get<std::string>()); }
// Passes each record of a file to `take`, one line at a time. A torn last line is left out. A line that cannot be read
// is an InputError that names file and line. It is thrown, or, when `unreadable` is given, its text is appended there.
void for_each_metrics(const std::filesystem::path& path, std::vector<std::string>* unreadable,
                      const std::function<void(MetricsRecord)>& take);
std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path,
                                        std::vector<std::string>* unreadable = nullptr);

// A MetricsWriter appends records to metrics.jsonl, one write each. Only one thread may use it. Throws RunError naming
// the file when the disk fails.
class MetricsWriter : private Immovable {
 public:
  // Opens or creates the file and cuts off all that follows the last record with step <= `keep_through`.
  MetricsWriter(std::filesystem::path path, int64_t keep_through);
  ~MetricsWriter();

  void append(const MetricsRecord& record);
  void sync() const;  // returns when all records are on the disk

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace collimate::base
