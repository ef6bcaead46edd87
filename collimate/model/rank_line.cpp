#include "collimate/model/rank_line.h"

#include <utility>

#include "collimate/comm/values.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {

void RankLine::sum(const tensor::Exec& exec, float* values, int64_t count) const {
  if (group == nullptr || count == 0) return;
  sum(tensor::HostEdit(exec, values, count).span());
}

void RankLine::sum(std::span<float> values) const {
  if (group != nullptr && !values.empty()) group->all_reduce(values).wait(deadline_seconds);
}

uint64_t RankLine::sum(uint64_t value) const {
  return group == nullptr ? value : comm::sum_in_order(*group, value, deadline_seconds);
}

double RankLine::sum(double value) const {
  return group == nullptr ? value : comm::sum_in_order(*group, value, deadline_seconds);
}

int64_t RankLine::most(int64_t value) const {
  return group == nullptr ? value : comm::largest(*group, value, deadline_seconds);
}

std::vector<float> RankLine::gather(int owner, int64_t count, std::vector<float> values) const {
  if (group == nullptr) return values;
  return comm::bring_to_first(*group, owner, count, std::move(values));
}

}  // namespace collimate::model
