#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collimate/graph/recording.h"
#include "collimate/host/file_io.h"

namespace collimate::flow {

// Why nothing can be appended after a recording's first `bytes`: no such file, or how many it has; "" where it can.
std::string recording_problem(const std::string& path, int64_t bytes);

// The file events.jsonl: every event with its actions, as graph/replay.h has them. Used by the driver's thread alone.
// Throws RunError when the disk fails.
class Recording {
 public:
  // A new file that begins with `header`.
  Recording(const std::string& path, const std::string& header);
  // Goes on after the first `bytes` of `source`, which has them: `path` itself or the recording of the run gone on
  // from.
  Recording(const std::string& path, const std::string& source, int64_t bytes);

  void step(const graph::Event& event, std::span<const graph::Action> actions);
  // The length of the file, with every step so far in it.
  int64_t bytes();
  // Does the same when all of it has reached the disk, with the names of the files in its directory.
  int64_t sync();

 private:
  void write(const std::string& text);

  host::FileDescriptor fd_;
  std::string path_;
  graph::RecordingWriter writer_;
  int64_t bytes_ = 0;
};

}  // namespace collimate::flow
