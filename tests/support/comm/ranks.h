#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/comm/group.h"

namespace collimate::comm {

// Runs body(group) on `size` ranks that are threads; throws here what the lowest rank that failed has thrown.
inline void with_ranks(int size, const std::string& name, const std::function<void(Group&)>& body,
                       double deadline_seconds = 20.0) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(*thread_group({name, "", rank, size, deadline_seconds}));
      } catch (...) {
        base::at(failures, rank) = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace collimate::comm
