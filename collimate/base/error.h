#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace collimate::base {

// Error is the base of every error that a user can cause or meet. The command line exits with `exit_code()`.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, int exit_code) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The input (config, file, data, argument) is wrong; nothing was changed. Exit code 2.
struct InputError : Error {
  explicit InputError(const std::string& message) : Error(message, 2) {}
};

// The run failed: a peer, the disk, a reward. Exit code 1.
struct RunError : Error {
  explicit RunError(const std::string& message) : Error(message, 1) {}
};

// The run was asked to stop and has saved its state. Exit code 3.
struct StoppedError : Error {
  explicit StoppedError(const std::string& message) : Error(message, 3) {}
};

// A guard stopped the run: stale weights, log-prob mismatch, NaN. Exit code 4.
struct GuardError : Error {
  explicit GuardError(const std::string& message) : Error(message, 4) {}
};

// Returns "[where] expected X, got Y; try Z". The part from ';' on is left out when `remedy` is empty.
std::string expectation(const std::string& where, const std::string& expected, const std::string& got,
                        const std::string& remedy = "");

// Throws std::logic_error naming file, line and condition. Only COLLIMATE_CHECK calls it.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace collimate::base

// COLLIMATE_CHECK is for invariants that only a defect of Collimate can break, never for a user's mistake.
#define COLLIMATE_CHECK(condition, ...)                                                               \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::collimate::base::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
