#include "collimate/model/stage_ranks.h"

#include "collimate/base/error.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {

void StageRanks::send(const tensor::Exec& exec, const float* values, int64_t count, int behind) const {
  if (group == nullptr) return;
  const tensor::HostRead seen(exec, values, count);
  group->send(std::as_bytes(seen.span()), neighbour(behind));
}

void StageRanks::receive(const tensor::Exec& exec, float* values, int64_t count, int behind) const {
  if (group == nullptr) return;
  const tensor::HostEdit seen(exec, values, count);
  group->receive(std::as_writable_bytes(seen.span()), neighbour(behind));
}

void StageRanks::share_last(const tensor::Exec& exec, float* values, int64_t count) const {
  if (group == nullptr || count == 0) return;
  share_last(tensor::HostEdit(exec, values, count).span());
}

void StageRanks::share_last(std::span<float> values) const {
  if (group != nullptr && !values.empty())
    group->broadcast(std::as_writable_bytes(values), place.ranks - 1).wait(deadline_seconds);
}

std::vector<double> StageRanks::sum(const std::vector<double>& values) const {
  if (group == nullptr || values.empty()) return values;
  std::vector<double> all(values.size() * static_cast<size_t>(place.ranks)), sums(values.size());
  group->all_gather(comm::bytes_of(values), comm::writable_bytes_of(all)).wait(deadline_seconds);
  for (size_t i = 0; i < all.size(); ++i) sums[i % values.size()] += all[i];
  return sums;
}

void StageRanks::sum_ends(std::span<float> values) const {
  if (group == nullptr) return;
  COLLIMATE_CHECK(place.is_first() != place.is_last(), "stage {} of {}", place.rank, place.ranks);
  const int other = place.is_first() ? place.ranks - 1 : 0;
  std::vector<float> theirs(values.size());
  if (place.is_first()) group->send(std::as_bytes(values), other);
  group->receive(comm::writable_bytes_of(theirs), other);
  if (!place.is_first()) group->send(std::as_bytes(values), other);
  for (size_t i = 0; i < values.size(); ++i) values[i] += theirs[i];
}

}  // namespace collimate::model
