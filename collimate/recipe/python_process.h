#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::recipe {

// Runs a Python process that has imported a user's plugin and answers questions about it
// (python/collimate/plugin_worker.py), one at a time: a caller holds turn() while it asks. The process ends with this
// object. What the file prints goes to the log.
class PythonProcess {
 public:
  static constexpr double kAnswerSeconds = 120;  // to import the file, to trace a flow, for a loss of one micro-batch
  // `crc` is the CRC-32C of the file as it was loaded, as no process imports another content. Throws RunError for a
  // file that has changed, and InputError and RunError as ask() does where it cannot be imported.
  PythonProcess(const std::string& path, uint32_t crc, double seconds = kAnswerSeconds);
  ~PythonProcess();

  // Returns what the process has said of the file: {"flows", "losses", "modules"}.
  const nlohmann::json& told() const { return told_; }

  using Buffers = std::vector<std::vector<std::byte>>;
  struct Answer {
    nlohmann::json header;
    Buffers buffers;
  };
  // Asks a question and returns the answer. Throws InputError, with Python's own message and the lines of the file, for
  // an answer that says what went wrong. Throws RunError where no answer comes in time. The process is then killed, and
  // there is none until revive().
  Answer ask(const nlohmann::json& question, const Buffers& buffers = {}, double seconds = kAnswerSeconds);
  // Starts a new process where the last one was killed, without what that had kept. Throws as the constructor does.
  void revive();
  // Ends the trace whose question gets no answer. A process that does not say that the trace has ended is killed.
  void stop();
  std::mutex& turn() { return turn_; }

 private:
  struct Child;
  void start(double seconds);
  Answer exchange(const nlohmann::json& question, const Buffers& buffers, double seconds);

  const std::string path_;
  const uint32_t crc_;
  nlohmann::json told_;
  std::unique_ptr<Child> child_;  // null when it has been killed
  std::mutex turn_;
};

}  // namespace collimate::recipe
