#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "collimate/graph/recording.h"
#include "collimate/host/file_io.h"

namespace collimate::flow {

// The beginning of a recording, as a checkpoint lists it. Checkpoints of earlier versions have no CRC-32C.
struct Recorded {
  int64_t bytes = -1;  // -1: nothing was recorded
  std::optional<uint32_t> crc32c;
};

// Why nothing can be appended after that beginning of a recording: no such file, how many bytes it has, or that they
// are others; "" where it can.
std::string recording_problem(const std::string& path, const Recorded& recorded);

// The file events.jsonl: every event with its actions, as graph/replay.h has them. Used by the driver's thread alone.
// Throws RunError when the disk fails.
class Recording {
 public:
  // A new file that begins with `header`.
  Recording(const std::string& path, const std::string& header);
  // Goes on after that beginning of `source`, which has it: `path` itself or the recording of the run gone on from.
  Recording(const std::string& path, const std::string& source, const Recorded& recorded);

  void step(const graph::Event& event, std::span<const graph::Action> actions);
  // Has every step so far in the file.
  void flush() { write(writer_.flush()); }
  // The whole file, when every step so far has reached the disk, with the names of the files in its directory.
  Recorded sync();

 private:
  void write(const std::string& text);

  host::FileDescriptor fd_;
  std::string path_;
  graph::RecordingWriter writer_;
  int64_t bytes_ = 0;
  uint32_t crc32c_ = 0;  // of them
};

}  // namespace collimate::flow
