#pragma once

#include "collimate/base/immovable.h"
#include "collimate/base/stop.h"

namespace collimate::cli {

// Installs the process's signal handlers, which only a program does, not the library, and returns the flag that they
// set. The first SIGINT or SIGTERM asks the run to save and stop after its iteration; a second one ends the process at
// once, without saving. SIGPIPE is ignored.
base::StopFlag& stop_on_signals();

// While an InterruptScope lives, SIGINT only sets its flag and ends nothing. Afterwards SIGINT ends the process again.
class InterruptScope : private base::Immovable {
 public:
  InterruptScope();
  ~InterruptScope();

  // Returns whether the signal came since the last take() or the construction.
  bool take();
};

}  // namespace collimate::cli
