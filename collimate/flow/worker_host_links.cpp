// This file has a worker's part of weight links.
#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/flow/worker_host.h"
#include "collimate/graph/weight_ranks.h"

namespace collimate::flow {
namespace {

template <class Asked>
std::string link_name(const Asked& asked) {
  return fmt::format("{} -> {}", asked.source, asked.destination);
}

}  // namespace

WeightsPort& WorkerHost::port(const std::string& model) {
  WeightsPort* weights = hosted(model).module->weights();
  if (weights == nullptr) throw base::RunError(base::expectation("link", model + " to have weights", "none"));
  return *weights;
}

message::Done WorkerHost::on(const message::WeightsHere& here) {
  transfer_here(link_name(here), port(here.source), port(here.destination));
  return {};
}

// Returns the buckets from this worker to another. They are planned once, and all workers plan alike.
const std::vector<std::vector<shape::Slice>>& WorkerHost::buckets_for(const message::WeightsOut& out) {
  Outgoing& outgoing = outgoing_[link_name(out)];
  if (outgoing.workers != out.workers) {
    outgoing = {out.workers, {}};
    graph::LinkEnds ends = graph::link_ends(graph_, placement_, out.source, out.destination, calls_);
    std::erase_if(ends.destinations, [&](const shape::WeightRank& rank) {
      return std::ranges::find(out.workers, rank.worker) == out.workers.end();
    });
    WeightsPort& source = port(out.source);
    const shape::TransferPlan plan =
        shape::plan_transfer({source.whole_shape(), source.whole_params(), ends.sources, ends.destinations});
    for (const shape::Route& route : plan.routes)
      if (route.source == spec_.rank)
        outgoing.buckets[route.destination] = shape::buckets_of(route.slices, kBucketFloats);
  }
  return outgoing.buckets[out.to];
}

message::Weights WorkerHost::on(const message::WeightsOut& out) {
  const auto& buckets = buckets_for(out);
  if (out.bucket >= std::ssize(buckets)) return {};
  return {.bucket = std::make_shared<const WeightBucket>(
              pack_bucket(link_name(out), port(out.source), base::at(buckets, out.bucket)))};
}

template <class Asked>
IncomingWeights& WorkerHost::incoming(const Asked& asked) {
  Incoming& incoming = incoming_[link_name(asked)];
  if (incoming.transfer != asked.transfer) incoming = {asked.transfer, {}};
  return incoming.weights;
}

message::Done WorkerHost::on(const message::WeightsIn& in) {
  incoming(in).take(link_name(in), *in.bucket, port(in.destination));
  return {};
}

message::Done WorkerHost::on(const message::WeightsEnd& end) {
  incoming(end).finish(link_name(end), port(end.destination));
  incoming_.erase(link_name(end));
  return {};
}

}  // namespace collimate::flow
