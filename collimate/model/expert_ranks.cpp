#include "collimate/model/expert_ranks.h"

#include <utility>

#include "collimate/comm/values.h"

namespace collimate::model {

int64_t ExpertRanks::most(int64_t value) const {
  return group == nullptr ? value : comm::largest(*group, value, deadline_seconds);
}

uint64_t ExpertRanks::sum(uint64_t value) const {
  return group == nullptr ? value : comm::sum_in_order(*group, value, deadline_seconds);
}
double ExpertRanks::sum(double value) const {
  return group == nullptr ? value : comm::sum_in_order(*group, value, deadline_seconds);
}

std::vector<float> ExpertRanks::gather(int owner, int64_t count, std::vector<float> values) const {
  if (group == nullptr) return values;
  return comm::bring_to_first(*group, owner, count, std::move(values));
}

}  // namespace collimate::model
