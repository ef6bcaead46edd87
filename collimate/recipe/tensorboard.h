#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collimate/base/metrics.h"

namespace collimate::recipe {

// Writes a file of events that TensorBoard reads, one scalar for each metric and step: TFRecords (length, masked
// CRC-32C, data, its CRC) of `Event` messages (tensorflow/core/util/event.proto). The file is a copy of metrics.jsonl
// and is written anew when a run goes on, so that every step stands there once.
class TensorboardWriter {
 public:
  // `wall_start`: when the run began, in seconds since 1970; a record is `time_seconds` later. Throws RunError naming
  // the file when the disk fails.
  TensorboardWriter(const std::filesystem::path& directory, double wall_start,
                    const std::vector<base::MetricsRecord>& earlier);

  void append(const base::MetricsRecord& record);

 private:
  void write(const std::string& event);

  std::filesystem::path path_;
  std::ofstream file_;
  double wall_start_;
};

}  // namespace collimate::recipe
