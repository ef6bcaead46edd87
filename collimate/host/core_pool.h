#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "collimate/base/immovable.h"

namespace collimate::host {

// A CorePool holds the threads of one worker; all parallel work of the worker goes through it. A waiting thread spins
// for a bounded time and then waits on a futex, so that ranks which share cores make progress. `parallel_for` blocks;
// calls from inside a task run serially in that task.
class CorePool : private base::Immovable {
 public:
  // `threads` counts the caller, so 1 starts no thread. Each started thread calls `begin` first. Throws InputError for
  // threads < 1.
  explicit CorePool(int threads, std::function<void()> begin = {});
  ~CorePool();

  int threads() const;

  // Calls body(begin, end) on disjoint ranges that cover [0, count). Each begins at a multiple of `grain` and, except
  // for the last, has at least `grain` items. Ranges are handed out dynamically, so results must not depend on the
  // split. The first exception is rethrown here. While one thread's loop runs, a call from another thread runs its loop
  // serially.
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::host
