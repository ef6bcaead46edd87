#include "collimate/comm/values.h"

namespace collimate::comm {

int64_t largest(Group& group, int64_t value, double deadline_seconds) {
  std::vector<float> all = {static_cast<float>(value)};
  group.all_reduce_max(all).wait(deadline_seconds);
  return static_cast<int64_t>(all[0]);
}

std::vector<float> bring_to_first(Group& group, int owner, int64_t count, std::vector<float> values) {
  if (owner == 0) return values;
  if (group.rank() == owner) group.send(bytes_of(values), 0);
  if (group.rank() != 0) return {};
  values.resize(static_cast<size_t>(count));
  group.receive(writable_bytes_of(values), owner);
  return values;
}

}  // namespace collimate::comm
