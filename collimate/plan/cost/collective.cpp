#include "collimate/plan/cost/collective.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace collimate::plan {
namespace {

// Returns the bytes that cross a rank's link, over the bytes of the buffer.
double traffic(Collective kind, int ranks) {
  const double share = (ranks - 1.0) / ranks;
  if (kind == Collective::kAllReduce) return 2 * share;
  return kind == Collective::kBroadcast ? 1.0 : share;
}

double bandwidth(const RankSet& set, const DeviceKind& gpu, const Constants& c) {
  const double link = gpu.link_bytes_per_second * c.link_efficiency;
  if (set.nodes() == 1) return link;
  return std::min(link, gpu.network_bytes_per_second * set.in_node * c.network_efficiency);
}

double latency(Collective kind, Algorithm algorithm, const RankSet& set, const NcclConstants& nccl) {
  const double between = set.nodes() - 1.0, all = set.ranks - 1.0;
  const double rounds = kind == Collective::kAllReduce ? 2.0 : 1.0;
  if (algorithm == Algorithm::kRing)
    return nccl.base_seconds + rounds * ((all - between) * nccl.link_seconds + between * nccl.network_seconds);
  return nccl.base_seconds +
         2 * ((set.in_node - 1) * nccl.link_seconds + std::log2(set.nodes()) * nccl.network_seconds);
}

// Every rank sends to every other one at once. Data for ranks of the same node go over its links, other data over the
// rank's own network card.
double all_to_all_seconds(double bytes, const RankSet& set, const DeviceKind& gpu, const Constants& c) {
  const double each = bytes / set.ranks;
  const double inside = each * (set.in_node - 1) / (gpu.link_bytes_per_second * c.link_efficiency);
  const double outside = each * (set.ranks - set.in_node) / (gpu.network_bytes_per_second * c.network_efficiency);
  return std::max(inside, outside);
}

}  // namespace

RankSet rank_set(int ranks, int stride, int per_node) {
  return {ranks, std::clamp(per_node / std::max(stride, 1), 1, std::max(ranks, 1))};
}

double collective_seconds(Collective kind, double bytes, const RankSet& set, const DeviceKind& gpu,
                          const Constants& c) {
  if (set.ranks <= 1 || bytes <= 0) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    if (algorithm == Algorithm::kTree && kind != Collective::kAllReduce) continue;
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      const NcclConstants& nccl = c.nccl[Constants::nccl_index(algorithm, protocol)];
      const double ideal = kind == Collective::kAllToAll ? all_to_all_seconds(bytes, set, gpu, c)
                                                         : traffic(kind, set.ranks) * bytes / bandwidth(set, gpu, c);
      const double transfer = ideal / nccl.efficiency;
      best = std::min(best, latency(kind, algorithm, set, nccl) + transfer);
    }
  }
  return best;
}

double send_seconds(double bytes, bool same_node, const DeviceKind& gpu, const Constants& c) {
  const NcclConstants& nccl = c.nccl[Constants::nccl_index(Algorithm::kRing, Protocol::kSimple)];
  const double speed =
      same_node ? gpu.link_bytes_per_second * c.link_efficiency : gpu.network_bytes_per_second * c.network_efficiency;
  return nccl.base_seconds + (same_node ? nccl.link_seconds : nccl.network_seconds) + bytes / speed;
}

}  // namespace collimate::plan
