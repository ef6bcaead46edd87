#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "collimate/base/immovable.h"

namespace collimate::host {

// The threads of one worker; all parallel work of the worker goes through it. A bounded spin, then a futex wait, so
// that ranks which share cores make progress. `parallel_for` blocks; calls from inside a task run serially in that
// task.
class CorePool : private base::Immovable {
 public:
  // `threads` counts the caller; 1 starts none. Each started thread calls `begin` first. Throws InputError for threads
  // < 1.
  explicit CorePool(int threads, std::function<void()> begin = {});
  ~CorePool();

  int threads() const;

  // Calls body(begin, end) on disjoint ranges that cover [0, count), each of at least `grain` items but for the last.
  // Ranges are handed out dynamically, so results must not depend on the split; each begins at a multiple of `grain`.
  // The first exception is rethrown here. A second thread that calls meanwhile runs its own loop serially.
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::host
