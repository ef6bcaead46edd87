#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/metrics.h"
#include "collimate/recipe/protobuf.h"

namespace collimate::recipe {

// Holds what Weights & Biases shows of a run beside its metrics.
struct WandbRun {
  std::string name;
  nlohmann::json config;  // an object
  double wall_start = 0;  // when it began, in seconds since 1970
};

// Writes an offline run of Weights & Biases, which `wandb sync DIRECTORY` uploads. The file is
// offline-run-TIME-ID/run-ID.wandb below `directory`, a log of `Record` messages (wandb/proto/wandb_internal.proto) in
// the frames of LevelDB's log with zlib's CRC-32. Like TensorBoard's events it is a copy of metrics.jsonl and is
// written anew, under the same ID, when a run goes on.
class WandbWriter {
 public:
  // Throws RunError naming the file when the disk fails.
  WandbWriter(const std::filesystem::path& directory, const WandbRun& run,
              const std::vector<base::MetricsRecord>& earlier);

  void append(const base::MetricsRecord& record);
  // Says that the run has come to its end after `seconds`. Without this it counts as failed.
  void finish(double seconds);

 private:
  void write(unsigned kind, const ProtobufMessage& content);  // a Record of one field
  void write_frame(unsigned char type, const std::string& data);

  std::filesystem::path path_;
  std::ofstream file_;
  double wall_start_;
  int64_t records_ = 0;
  size_t in_block_ = 0;  // bytes of the block that is being filled
};

}  // namespace collimate::recipe
