#include "collimate/model/tensor_ranks.h"

#include "collimate/tensor/host_access.h"

namespace collimate::model {

void TensorRanks::max(const tensor::Exec& exec, float* values, int64_t count) const {
  if (group == nullptr || count == 0) return;
  const tensor::HostEdit seen(exec, values, count);
  group->all_reduce_max(seen.span()).wait(deadline_seconds);
}

std::vector<float> TensorRanks::gather(const shape::ParamSpec& whole, std::vector<float> values) const {
  if (group == nullptr) return values;
  if (place.rank > 0) {
    if (shape::is_cut(whole, place.ranks)) group->send(comm::bytes_of(values), 0);
    return {};
  }
  if (!shape::is_cut(whole, place.ranks)) return values;
  std::vector<float> all(static_cast<size_t>(whole.count()));
  for (int rank = 0; rank < place.ranks; ++rank) {
    const shape::ParamSpec of_rank = shape::local(whole, {rank, place.ranks});
    values.resize(static_cast<size_t>(of_rank.count()));
    if (rank > 0) group->receive(comm::writable_bytes_of(values), rank);
    shape::put_pieces(of_rank, values, all);
  }
  return all;
}

}  // namespace collimate::model
