#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::recipe {

// A Python process that has imported a user's plugin and answers questions about it
// (python/collimate/plugin_worker.py), one at a time: who asks holds its turn. It ends with this object. What the file
// prints goes to the log.
class PythonProcess {
 public:
  static constexpr double kAnswerSeconds = 120;  // to import the file, to trace a flow, for a loss of one micro-batch
  // `crc` is of the file as it was loaded: no process imports another content. RunError for one that has changed;
  // InputError and RunError as of ask() where it cannot be imported.
  PythonProcess(const std::string& path, uint32_t crc, double seconds = kAnswerSeconds);
  ~PythonProcess();

  // The process has said this of the file: {"flows", "losses", "modules"}.
  const nlohmann::json& told() const { return told_; }

  using Buffers = std::vector<std::vector<std::byte>>;
  struct Answer {
    nlohmann::json header;
    Buffers buffers;
  };
  // InputError for an answer that says what went wrong: with Python's own message and the lines of the file. RunError
  // where none comes in time: the process is killed, and there is none until it is revived.
  Answer ask(const nlohmann::json& question, const Buffers& buffers = {}, double seconds = kAnswerSeconds);
  // Starts a process again where the last one has ended, without what that had kept. Throws as the constructor does.
  void revive();
  // Ends the trace that asked, which gets no answer. A process that does not say that it has ended is killed.
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
