#pragma once

#include "collimate/plan/inputs/constants.h"
#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {

enum class Collective { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };

// A RankSet is the ranks of one group, spread over nodes.
struct RankSet {
  int ranks = 1;
  int in_node = 1;  // of them on one node
  int nodes() const { return (ranks + in_node - 1) / in_node; }
};
// Makes a set of `ranks` ranks that are `stride` devices apart, on nodes of `per_node` devices.
RankSet rank_set(int ranks, int stride, int per_node);

// Returns the seconds of one collective, by the best of NCCL's algorithms and protocols in its own latency model (ring
// and tree; LL, LL128, Simple). `bytes` is the whole buffer: what all-reduce and broadcast leave on each rank, what
// all-gather leaves and reduce-scatter takes, or what a rank of an all-to-all sends in all.
double collective_seconds(Collective kind, double bytes, const RankSet& ranks, const DeviceKind& gpu,
                          const Constants& constants);
// Returns the seconds of a message from one rank to another.
double send_seconds(double bytes, bool same_node, const DeviceKind& gpu, const Constants& constants);

}  // namespace collimate::plan
