#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/comm/group.h"

namespace collimate::comm {

inline constexpr double kDeadlineOfRanks = 20.0;  // seconds

// Runs body(group) on `size` ranks of a back end that are threads of this process; throws here what the lowest rank
// that failed has thrown.
inline void with_ranks(int size, const std::string& name, const std::function<void(Group&)>& body,
                       const std::string& kind = "threads") {
  const BackEnd& ends = back_end(kind);
  const std::unique_ptr<GroupStore> store = ends.open_store();
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(*ends.join({name, store->address(), rank, size, kDeadlineOfRanks}));
      } catch (...) {
        base::at(failures, rank) = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

inline std::vector<std::string> back_end_names() {
  std::vector<std::string> names;
  for (const BackEnd& one : back_ends()) names.push_back(one.name);
  return names;
}

// A test of every back end.
class EachGroup : public testing::TestWithParam<std::string> {
 protected:
  void run(int size, const std::string& name, const std::function<void(Group&)>& body) const {
    with_ranks(size, name, body, GetParam());
  }
};

}  // namespace collimate::comm
