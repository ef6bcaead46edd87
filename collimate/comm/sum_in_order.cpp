#include <numeric>

#include "collimate/comm/group.h"

namespace collimate::comm {
namespace {

template <class T>
T sum_of_all(Group& group, T value, double deadline_seconds) {
  const std::vector<T> mine = {value};
  std::vector<T> all(static_cast<size_t>(group.size()));
  group.all_gather(bytes_of(mine), writable_bytes_of(all)).wait(deadline_seconds);
  return std::accumulate(all.begin(), all.end(), T{});
}

}  // namespace

double sum_in_order(Group& group, double value, double deadline_seconds) {
  return sum_of_all(group, value, deadline_seconds);
}
uint64_t sum_in_order(Group& group, uint64_t value, double deadline_seconds) {
  return sum_of_all(group, value, deadline_seconds);
}

}  // namespace collimate::comm
