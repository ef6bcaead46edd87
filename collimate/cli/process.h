#pragma once

#include "collimate/base/immovable.h"
#include "collimate/base/stop.h"

namespace collimate::cli {

// Signals and ATen's threads are the process's, not the library's. The first SIGINT or SIGTERM asks the run to save and
// stop after its iteration; a second one ends the process at once, without saving.
base::StopFlag& stop_on_signals();

// While it lives SIGINT ends nothing but sets its flag.
class InterruptScope : private base::Immovable {
 public:
  InterruptScope();
  ~InterruptScope();

  // Returns true once for each time the signal came.
  bool take();
};

}  // namespace collimate::cli
