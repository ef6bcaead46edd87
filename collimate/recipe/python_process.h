#pragma once

#include <cstddef>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/host/child_lines.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"

namespace collimate::recipe {

// A Python process that has imported a user's plugin and answers questions about it
// (python/collimate/plugin_worker.py), one at a time: who asks holds its turn. It ends with this object. What the file
// prints goes to the log.
class PythonProcess {
 public:
  explicit PythonProcess(const std::string& path);

  using Buffers = std::vector<std::vector<std::byte>>;
  static constexpr double kAnswerSeconds = 120;  // to import the file, to trace a flow, for a loss of one micro-batch
  struct Answer {
    nlohmann::json header;
    Buffers buffers;
  };
  // InputError for an answer that says what went wrong: with Python's own message and the lines of the file. RunError
  // where none comes in time: the process is killed.
  Answer ask(const nlohmann::json& question, const Buffers& buffers = {}, double seconds = kAnswerSeconds);
  // Ends the trace that asked, which gets no answer.
  void stop();
  std::mutex& turn() { return turn_; }

 private:
  const std::string path_;
  host::ChildProcess child_;
  host::ChildLines lines_;
  host::FrameSocket socket_;
  std::mutex turn_;
};

}  // namespace collimate::recipe
