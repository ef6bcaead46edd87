#pragma once

#include "collimate/base/stop.h"

namespace collimate::cli {

// What is the process's and not the library's: signals and ATen's threads. The first SIGINT or SIGTERM asks the run to
// save and stop; a second one ends the process at once.
base::StopFlag& stop_on_signals();

}  // namespace collimate::cli
