#include <algorithm>

#include "collimate/plan/cost/phase_parts.h"
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
  return send_seconds(2 * tokens * static_cast<double>(job.model.hidden) / layout.tp, same_node, job.gpu, c);
}

StageTime stage_time(const Job& job, const Execution& how, const Constants& c, double rows, double efficiency) {
  const graph::Layout& layout = how.layout;
  const Moments length = job.load.row_tokens();
  const double peak = (how.fp8 && job.gpu.fp8_flops > 0 ? job.gpu.fp8_flops : job.gpu.flops) * efficiency;
  const double layers = static_cast<double>(job.model.layers) / layout.pp;
  const double flops = forward_flops(job.model, length, job.language_head) * rows / (layout.tp * layout.pp * layout.cp);
  const double tokens = rows * length.mean / layout.cp;
  StageTime stage;
  stage.compute = std::max(flops / peak, layers * c.layer_seconds);
  stage.tensor = layers * (exchange_seconds(job, how, c, tokens) + context_seconds(job, how, c, tokens));
  stage.send = stage_send_seconds(job, how, c, tokens);
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
