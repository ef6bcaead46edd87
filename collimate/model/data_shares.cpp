#include "collimate/model/data_shares.h"

namespace collimate::model {

void exchange_pieces(comm::Group& group, std::span<std::byte> all, int64_t piece_bytes, double deadline_seconds) {
  const auto piece = static_cast<size_t>(piece_bytes), ranks = static_cast<size_t>(group.size());
  const std::span<std::byte> pieces = all.first(piece * ranks), rest = all.subspan(pieces.size());
  const std::span<std::byte> mine = pieces.subspan(piece * static_cast<size_t>(group.rank()), piece);
  if (!pieces.empty()) group.all_gather(mine, pieces).wait(deadline_seconds);
  if (!rest.empty()) group.broadcast(rest, group.size() - 1).wait(deadline_seconds);
}

Share DataShares::kept(int64_t floats) const { return shape::kept_of(floats, rank, ranks); }

void DataShares::gather(std::span<float> all) const {
  if (group == nullptr) return;
  const int64_t piece = kept(static_cast<int64_t>(all.size())).piece;
  exchange_pieces(*group, std::as_writable_bytes(all), piece * static_cast<int64_t>(sizeof(float)), deadline_seconds);
}

}  // namespace collimate::model
