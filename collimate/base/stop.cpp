#include "collimate/base/stop.h"

#include <cstring>

#include "collimate/base/error.h"

namespace collimate::base {

void StopFlag::throw_if_requested(const char* place) const {
  if (!requested()) return;
  const int number = signal();
  throw StoppedError(
      fmt::format("stopped before {} {}", place,
                  number > 0 ? fmt::format("by signal {} ({})", number, strsignal(number)) : "on request"));
}

}  // namespace collimate::base
