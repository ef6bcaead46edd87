#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/base/stop.h"

namespace collimate::python {

// A call from Python does to its process, while it lasts, what the command line does for good: ATen's memory is counted
// and its loops stay in their threads. RunError where another call is going on: the numbers of memory are one
// process's.
class ProcessScope : private base::Immovable {
 public:
  ProcessScope();
  ~ProcessScope();

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

// While it lives, SIGINT and SIGTERM ask a run to save and stop, and once more to stop at once; then the caller's
// handlers are back. One at a time.
class SignalScope : private base::Immovable {
 public:
  SignalScope();
  ~SignalScope();

  base::StopFlag& stop() const;
  bool repeated() const;  // the signal came a second time

 private:
  struct Saved;
  static void on_signal(int number);

  static std::atomic<Saved*> living_;  // of the scope that lives now
  std::unique_ptr<Saved> saved_;
};

// While it lives, the thread that made it runs functions of the caller. Where that is Python's main thread, which looks
// for no signal otherwise, a signal raises in them what it raises in Python.
class CallersCode : private base::Immovable {
 public:
  explicit CallersCode(bool on_main_thread);
  ~CallersCode();
  static bool on_main_thread();

 private:
  bool counted_;
};

// Returns what `call` gives, or {"signal", "message"} where a signal stopped it.
template <class Call>
nlohmann::ordered_json unless_stopped(SignalScope& signals, const Call& call) {
  try {
    return call();
  } catch (const base::StoppedError& error) {
    return {{"signal", signals.stop().signal()}, {"message", error.what()}};
  }
}

}  // namespace collimate::python
