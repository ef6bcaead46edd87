#include "collimate/model/expert_ranks.h"

namespace collimate::model {

int64_t ExpertRanks::most(int64_t value) const {
  if (group == nullptr) return value;
  std::vector<float> all = {static_cast<float>(value)};
  group->all_reduce_max(all).wait(deadline_seconds);
  return static_cast<int64_t>(all[0]);
}

uint64_t ExpertRanks::sum(uint64_t value) const {
  return group == nullptr ? value : comm::sum_in_order(*group, value, deadline_seconds);
}
double ExpertRanks::sum(double value) const {
  return group == nullptr ? value : comm::sum_in_order(*group, value, deadline_seconds);
}

std::vector<float> ExpertRanks::gather(int owner, int64_t count, std::vector<float> values) const {
  if (group == nullptr || owner == 0) return values;
  if (place.rank == owner) group->send(comm::bytes_of(values), 0);
  if (place.rank != 0) return {};
  values.resize(static_cast<size_t>(count));
  group->receive(comm::writable_bytes_of(values), owner);
  return values;
}

}  // namespace collimate::model
