#pragma once

#include <sched.h>

#include <cstddef>

#include "collimate/base/immovable.h"

namespace collimate::comm {

// Keeps this thread, and those it starts, to two of the cores it may run on; its end gives the others back.
class TwoCores : private base::Immovable {
 public:
  TwoCores() {
    CPU_ZERO(&before_);
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t two;
    CPU_ZERO(&two);
    for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &two);
    limited_ = ::sched_setaffinity(0, sizeof two, &two) == 0;
  }
  ~TwoCores() {
    if (limited_) ::sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_;
  bool limited_ = false;
};

}  // namespace collimate::comm
