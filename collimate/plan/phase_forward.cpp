#include <algorithm>
#include <cmath>

#include "collimate/plan/collective.h"
#include "collimate/plan/phase_parts.h"

namespace collimate::plan {

StageTime stage_time(const Job& job, const Execution& how, const Constants& c, double rows, double efficiency) {
  const graph::Layout& layout = how.layout;
  const double length = job.load.prompt.mean() + job.load.completion.mean();
  const double peak = (how.fp8 && job.gpu.fp8_flops > 0 ? job.gpu.fp8_flops : job.gpu.flops) * efficiency;
  const double layers = static_cast<double>(job.model.layers) / layout.pp;
  const double flops = forward_flops(job.model, length, job.language_head) * rows / (layout.tp * layout.pp * layout.cp);
  const double tokens = rows * length / layout.cp;
  const double bytes = 2 * tokens * static_cast<double>(job.model.hidden);
  StageTime stage;
  stage.compute = std::max(flops / peak, layers * c.layer_seconds);
  const RankSet tensor = rank_set(layout.tp, 1, job.per_node);
  stage.tensor = layers * 2 * collective_seconds(Collective::kAllReduce, bytes, tensor, job.gpu, c);
  if (job.model.experts.count > 0 && layout.ep > 1) {
    const double sent = bytes * static_cast<double>(job.model.experts.per_token) / layout.tp;
    const RankSet experts = rank_set(layout.ep, 1, job.per_node);
    stage.tensor += layers * 2 * collective_seconds(Collective::kAllToAll, sent, experts, job.gpu, c);
  }
  if (layout.pp > 1) {
    const bool same_node = layout.tp * layout.cp * 2 <= job.per_node;
    stage.send = send_seconds(bytes / layout.tp, same_node, job.gpu, c);
  }
  return stage;
}

PhaseTime score_time(const Job& job, const Execution& how, const Constants& c) {
  const double rows = micro_batch_rows(job, how);
  const double micro_batches = replica_rows(job, how) / rows;
  const StageTime stage = stage_time(job, how, c, rows, c.score_efficiency);
  PhaseTime time;
  time.compute = micro_batches * stage.compute;
  time.tensor = micro_batches * (stage.tensor + stage.send);
  time.bubble = (how.layout.pp - 1) * stage.total();
  if (how.layout.zero >= 3) time.data = micro_batches * (1 - c.overlap) * gather_seconds(job, how, c);
  time.fixed = c.phase_seconds;
  return time;
}

double gather_seconds(const Job& job, const Execution& how, const Constants& c) {
  const int dp = static_cast<int>(replicas(job, how)) * how.layout.cp;
  const RankSet ranks = rank_set(dp, how.layout.tp, job.per_node);
  return collective_seconds(Collective::kAllGather, 2 * device_parameters(job, how), ranks, job.gpu, c);
}

}  // namespace collimate::plan
