#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/immovable.h"
#include "collimate/host/child_lines.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {

// The function or class that a key names: a .py file, and a name in it.
struct PythonFunction {
  std::string file;
  std::string function;
};
// Parses "FILE.py" or "FILE.py:name"; without a name it is `usual`.
PythonFunction python_function(const std::string& target, const std::string& usual = "score");

// Returns an error of the user's code with what to do where the sandbox has caused it.
std::string with_remedy(const std::string& error, const PythonCodeSection& options);

// Passes text that a function prints on to the log, of each call only the first kMostBytes.
class PrintedLines {
 public:
  explicit PrintedLines(std::string key) : key_(std::move(key)) {}
  void begin_call() { left_ = kMostBytes; }
  void pass_on(const std::string& line);

 private:
  static constexpr int64_t kMostBytes = int64_t{1} << 18;
  std::string key_;  // "reward.python"
  std::atomic<int64_t> left_{kMostBytes};
  std::atomic<bool> told_{false};
};

// One process of a module of the package that has imported a user's file, over pipes, in a sandbox (host/sandbox.h)
// unless the section says otherwise. One thread uses it at a time.
class PythonProcess : private base::Immovable {
 public:
  using Waiting = std::function<void()>;

  // Imports the file. `key` is that of the config, for errors ("python"), and `waiting` is called again and again until
  // an answer comes, here and in ask(). Throws InputError, with Python's own message, when the file cannot be imported
  // or the kernel refuses a sandbox, and RunError when it takes longer than start_timeout_seconds.
  PythonProcess(const PythonCodeSection& options, const std::string& module, const PythonFunction& asked,
                const std::string& key, const Waiting& waiting);

  // Returns read(what the process tells of the function that it has imported). Throws RunError as ask() does.
  template <class Read>
  auto facts(const Read& read) const {
    return parsed(facts_, read);
  }

  // Sends a request and returns read(answer). Throws RunError that says how the process has ended, that the time is
  // over, or that the answer is of another form, as the user's code shares the process; this must not be used any more
  // then.
  template <class Read>
  auto ask(const nlohmann::json& request, double seconds, const Waiting& waiting, const Read& read) {
    printed_.begin_call();
    return parsed(answer_to(request, seconds, waiting), read);
  }

 private:
  nlohmann::json answer_to(const nlohmann::json& request, double seconds, const Waiting& waiting);
  nlohmann::json imported(const PythonCodeSection& options, const PythonFunction& asked, const std::string& key,
                          const Waiting& waiting);
  [[noreturn]] static void refuse_form(const std::string& problem);

  template <class Read>
  static auto parsed(const nlohmann::json& answer, const Read& read) {
    try {
      return read(answer);
    } catch (const nlohmann::json::exception& error) {
      refuse_form(error.what());
    }
  }

  PrintedLines printed_;
  host::ChildProcess child_;
  host::ChildLines lines_;  // what the function prints
  host::FrameSocket socket_;
  nlohmann::json facts_;
};

}  // namespace collimate::rlhf
