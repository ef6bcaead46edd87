#include <algorithm>

#include "collimate/plan/cost/phase_parts.h"
#include "collimate/plan/cost/stages.h"
#include "collimate/shape/context_heads.h"

namespace collimate::plan {

double exchange_seconds(const Job& job, const Execution& how, const Constants& c, double tokens) {
  const graph::Layout& layout = how.layout;
  const shape::Experts& experts = job.model.experts;
  const double bytes = 2 * tokens * static_cast<double>(job.model.hidden);
  const RankSet tensor = rank_set(layout.tp, 1, job.per_node);
  double seconds = 2 * collective_seconds(Collective::kAllReduce, bytes, tensor, job.gpu, c);
  if (experts.count > 0 && layout.ep > 1) {
    const double routed = 1 - static_cast<double>(job.model.dense_layers) / static_cast<double>(job.model.layers);
    const double sent = bytes * static_cast<double>(experts.per_token) / layout.tp;
    const RankSet ranks = rank_set(layout.ep, 1, job.per_node);
    seconds += routed * 2 * collective_seconds(Collective::kAllToAll, sent, ranks, job.gpu, c);
  }
  return seconds;
}

double context_seconds(const Job& job, const Execution& how, const Constants& c, double tokens) {
  const graph::Layout& layout = how.layout;
  if (layout.cp <= 1) return 0;
  if (layout.cp_kind == shape::ContextKind::kUlysses) {
    const double sent = tokens * job.gpu.value_bytes * layout.cp * attended_values(job.model, layout);
    const RankSet ranks = rank_set(layout.cp, layout.tp, job.per_node);
    return 2 * collective_seconds(Collective::kAllToAll, sent / 2, ranks, job.gpu, c);
  }
  const double cut = std::min<double>(layout.tp, static_cast<double>(job.model.kv_heads));
  const double bytes =
      tokens * job.gpu.value_bytes * 2 * static_cast<double>(job.model.kv_heads * job.model.head_dim) / cut;
  const bool same_node = layout.tp * layout.cp <= job.per_node;
  return (1 - c.overlap) * (layout.cp - 1) * send_seconds(bytes, same_node, job.gpu, c);
}

double stage_send_seconds(const Job& job, const Execution& how, const Constants& c, double tokens) {
  const graph::Layout& layout = how.layout;
  if (layout.pp <= 1) return 0;
  const bool same_node = layout.tp * layout.cp * 2 <= job.per_node;
  return layout.virtual_stages *
         send_seconds(2 * tokens * static_cast<double>(job.model.hidden) / layout.tp, same_node, job.gpu, c);
}

std::vector<StageTime> stage_times(const Job& job, const Execution& how, const Constants& c, double rows,
                                   double efficiency) {
  const graph::Layout& layout = how.layout;
  const Moments length = job.load.row_tokens();
  const double peak = (how.fp8 && job.gpu.fp8_flops > 0 ? job.gpu.fp8_flops : job.gpu.flops) * efficiency;
  const double all = forward_flops(job.model, length, job.language_head);
  const double of_layers = forward_flops(job.model, length, /*language_head=*/false);
  const double tokens = rows * length.mean / layout.cp;
  const double exchanges = exchange_seconds(job, how, c, tokens) + context_seconds(job, how, c, tokens);
  const std::vector<double> layers = layers_of_ranks(job, how);
  std::vector<StageTime> stages(layers.size());
  for (size_t s = 0; s < stages.size(); ++s) {
    const double part = layers[s] / static_cast<double>(job.model.layers);
    const double head = s + 1 == stages.size() ? all - of_layers : 0;
    const double flops = layout.stages.empty() ? all / layout.pp : of_layers * part + head;
    stages[s].compute = std::max(flops * rows / (layout.tp * layout.cp * peak), layers[s] * c.layer_seconds);
    stages[s].tensor = layers[s] * exchanges;
    stages[s].send = stage_send_seconds(job, how, c, tokens);
  }
  return stages;
}

PhaseTime score_time(const Job& job, const Execution& how, const Constants& c) {
  const double rows = micro_batch_rows(job, how);
  const double micro_batches = replica_rows(job, how) / rows;
  const PipelineTime pipeline = pipeline_time(stage_times(job, how, c, rows, c.score_efficiency),
                                              [](const StageTime& stage) { return stage.total(); });
  PhaseTime time;
  time.compute = micro_batches * pipeline.slowest.compute;
  time.tensor = micro_batches * (pipeline.slowest.tensor + pipeline.slowest.send);
  time.bubble = pipeline.others / how.layout.virtual_stages;
  if (how.layout.zero >= 3) time.data = micro_batches * (1 - c.overlap) * gather_seconds(job, how, c);
  time.fixed = c.phase_seconds;
  return time;
}

double held_seconds(Collective kind, const Held& elements, const Job& job, const Execution& how, const Constants& c) {
  const int tp = how.layout.tp, expert_cut = std::max(tp, how.layout.ep);
  const Holders alike = holders(job, how);
  const RankSet all = rank_set(static_cast<int>(alike.dense), tp, job.per_node);
  if (expert_cut == tp) return collective_seconds(kind, 2 * elements.all(), all, job.gpu, c);
  const RankSet of_experts = rank_set(static_cast<int>(alike.experts), expert_cut, job.per_node);
  return collective_seconds(kind, 2 * elements.dense, all, job.gpu, c) +
         collective_seconds(kind, 2 * elements.experts, of_experts, job.gpu, c);
}

double gather_seconds(const Job& job, const Execution& how, const Constants& c) {
  return held_seconds(Collective::kAllGather, held_parameters(job, how), job, how, c);
}

}  // namespace collimate::plan
