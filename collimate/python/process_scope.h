#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/base/stop.h"

namespace collimate::python {

// Sets up the process for the time of a call from Python, as the command line does for good: ATen's memory is counted,
// and ATen's loops run in the thread that calls them. Throws RunError if another call is going on, as memory is counted
// for the process as a whole.
class ProcessScope : private base::Immovable {
 public:
  ProcessScope();
  ~ProcessScope();

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

// While it lives, a first SIGINT or SIGTERM asks a run to save and stop, and a second one to stop at once. Its
// destructor puts the caller's handlers back. Only one may live at a time.
class SignalScope : private base::Immovable {
 public:
  // `on_stop` is called before either of the functions below throws.
  explicit SignalScope(std::function<void()> on_stop = {});
  ~SignalScope();

  base::StopFlag& stop();
  // Throws StoppedError when the signal came a second time.
  void throw_if_repeated() const;
  // Throws StoppedError of a call that keeps nothing, by its name, when the signal came.
  void throw_if_asked(const char* call) const;

 private:
  struct Saved;
  static void on_signal(int number);
  [[noreturn]] void stop_with(const std::string& message) const;

  static std::atomic<Saved*> living_;  // of the scope that lives now
  std::unique_ptr<Saved> saved_;
  std::function<void()> on_stop_;
};

// While it lives, the thread that made it runs functions of the caller. Where that is Python's main thread, which looks
// for no signal otherwise, a signal raises in them what it raises in Python.
class CallersCode : private base::Immovable {
 public:
  using Interrupt = int (*)(int signal);  // Python's PyErr_SetInterruptEx, which signal handlers may call
  CallersCode(bool on_main_thread, Interrupt interrupt);
  ~CallersCode();

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
