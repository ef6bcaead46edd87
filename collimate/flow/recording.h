#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "collimate/graph/recording.h"
#include "collimate/host/file_io.h"

namespace collimate::flow {

// A Recorded is the beginning of a recording, as a checkpoint lists it. Checkpoints of earlier versions have no
// CRC-32C.
struct Recorded {
  int64_t bytes = -1;  // -1: nothing was recorded
  std::optional<uint32_t> crc32c;
};

// Returns why nothing can be appended after that beginning of a recording: there is no such file, how many bytes it
// has, or that they are others. Returns "" where it can.
std::string recording_problem(const std::string& path, const Recorded& recorded);

// A Recording is the file events.jsonl: every event with its actions, as graph/replay.h has them. Only the driver's
// thread uses it. Throws RunError when the disk fails.
class Recording {
 public:
  // Makes a new file that begins with `header`.
  Recording(const std::string& path, const std::string& header);
  // Continues after that beginning of `source`, which must have it: `source` is `path` itself or the recording of the
  // run that is resumed.
  Recording(const std::string& path, const std::string& source, const Recorded& recorded);

  void step(const graph::Event& event, std::span<const graph::Action> actions);
  // Writes every step so far into the file.
  void flush() { write(writer_.flush()); }
  // Brings every step so far, and the names of the files in its directory, to the disk. Returns the length and checksum
  // of the whole file.
  Recorded sync();

 private:
  void write(const std::string& text);

  host::FileDescriptor fd_;
  std::string path_;
  graph::RecordingWriter writer_;
  int64_t bytes_ = 0;
  uint32_t crc32c_ = 0;  // of these bytes
};

}  // namespace collimate::flow
