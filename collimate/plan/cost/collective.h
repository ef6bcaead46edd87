#pragma once

#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };

// The ranks of one group on their hardware.
struct RankSet {
  int ranks = 1;
  int in_node = 1;  // of them on one node
  int nodes() const { return (ranks + in_node - 1) / in_node; }
};
// `ranks` ranks `stride` apart, nodes of `per_node` devices.
RankSet rank_set(int ranks, int stride, int per_node);

// Seconds of one collective. `bytes` is the whole buffer: what all-reduce and broadcast leave on each rank, what
// all-gather leaves and reduce-scatter takes, what a rank of an all-to-all sends in all. The best of NCCL's algorithms
// and protocols by its own latency model (ring and tree; LL, LL128, Simple).
double collective_seconds(Collective kind, double bytes, const RankSet& ranks, const DeviceKind& gpu,
                          const Constants& constants);
// A message from one rank to another.
double send_seconds(double bytes, bool same_node, const DeviceKind& gpu, const Constants& constants);

}  // namespace collimate::plan
