#include <algorithm>

#include "collimate/plan/cost/phase_parts.h"

namespace collimate::plan {
namespace {

// Returns the seconds of an update in which gradients go over the ranks that hold the same weights, once or with ZeRO 2
// and 3 for every micro-batch, and weights are gathered.
double data_seconds(const Job& job, const Execution& how, const Constants& c, double micro_batches) {
  const Held gradients = held_trained_parameters(job, how);
  if (how.layout.zero < 2) return (1 - c.overlap) * held_seconds(Collective::kAllReduce, gradients, job, how, c);
  if (how.layout.zero == 2)  // scatters every micro-batch's gradients, and gathers the new weights
    return (1 - c.overlap) * (micro_batches * held_seconds(Collective::kReduceScatter, gradients, job, how, c) +
                              held_seconds(Collective::kAllGather, gradients, job, how, c));
  const double gathers = (how.layout.recompute ? 3 : 2) * gather_seconds(job, how, c);
  const double scatter = held_seconds(Collective::kReduceScatter, gradients, job, how, c);
  return (1 - c.overlap) * micro_batches * (gathers + scatter);
}

// Returns the seconds of the update's own traffic: reads and writes of state and weights, on the device or, where it is
// off-loaded, on the host.
double update_traffic_seconds(const Job& job, const Execution& how, const Constants& c) {
  const bool spread = how.layout.zero >= 1 || how.layout.offload;
  const double elements = spread ? sharded_trained_parameters(job, how) : trained_parameters(job, how);
  const double state = elements * (2 * c.optimizer_bytes + c.gradient_bytes + 2);
  if (!how.layout.offload) return state / (job.gpu.memory_bytes_per_second * c.memory_efficiency);
  return (state + elements * 4) / job.gpu.host_bytes_per_second;
}

// Returns the part of a forward that is computed again where attention and activations are: attention's own products.
double selected_part(const Job& job, const Execution& how) {
  if (!how.selective || how.layout.recompute) return 0;
  const Moments tokens = job.load.row_tokens();
  return attention_flops(job.model, tokens) / forward_flops(job.model, tokens, job.language_head);
}

}  // namespace

PhaseTime train_time(const Job& job, const Execution& how, const Constants& c) {
  const double updates = std::max(job.load.updates, 1);
  const double rows = micro_batch_rows(job, how);
  const double micro_batches = replica_rows(job, how) / rows;
  const double passes = train_passes(how) + selected_part(job, how);
  const double exchanges =
      how.layout.recompute ? 3 : 2;  // of tensor parallelism: forward, backward, recomputed forward
  const PipelineTime pipeline = pipeline_time(
      stage_times(job, how, c, rows, c.train_efficiency),
      [&](const StageTime& stage) { return passes * stage.compute + exchanges * stage.tensor + 2 * stage.send; });
  const StageTime& forward = pipeline.slowest;
  PhaseTime time;
  time.compute = updates * micro_batches * passes * forward.compute;
  time.tensor = updates * micro_batches * (exchanges * forward.tensor + 2 * forward.send);
  time.bubble = updates * pipeline.others / how.layout.virtual_stages;
  time.data = updates * data_seconds(job, how, c, micro_batches);
  time.optimizer = updates * (update_traffic_seconds(job, how, c) + c.update_seconds);
  time.fixed = c.phase_seconds;
  return time;
}

PhaseTime phase_time(const Job& job, const Execution& how, const Constants& c, double resident_bytes) {
  if (job.work == Work::kTrain) return train_time(job, how, c);
  return job.work == Work::kScore ? score_time(job, how, c) : generate_time(job, how, c, resident_bytes);
}

}  // namespace collimate::plan
