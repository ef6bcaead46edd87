#include "collimate/plan/cost/job.h"

#include <algorithm>
#include <cmath>

#include "collimate/plan/cost/stages.h"

namespace collimate::plan {

using shape::Outline;

namespace {

double routed_parameters(const Outline& model) {
  if (model.experts.count == 0) return 0;
  const double each = (model.gated ? 3.0 : 2.0) * static_cast<double>(model.hidden * model.experts.intermediate);
  return static_cast<double>((model.layers - model.dense_layers) * model.experts.count) * each;
}

// Returns how many times fewer than all the layers on one device are: pp times where stages are equal.
double times_fewer_layers(const Job& job, const Execution& how) {
  if (how.layout.stages.empty()) return how.layout.pp;
  return static_cast<double>(job.model.layers) / layers_on_device(job, how);
}

double shard_of(const Held& held, const Holders& alike) {
  return held.dense / alike.dense + held.experts / alike.experts;
}

}  // namespace

Held held_parameters(const Job& job, const Execution& how) {
  const double tp = how.layout.tp, cut = times_fewer_layers(job, how);
  const double experts = routed_parameters(job.model);
  const double dense = shape::block_parameters(job.model) - experts;
  const double tables = shape::total_parameters(job.model) - shape::block_parameters(job.model);
  const int ends = ends_on_device(how);
  const double held_tables = ends == 1 && !job.model.tied ? tables / 2 : ends == 0 ? 0 : tables;
  return {dense / (tp * cut) + held_tables / tp, experts / (std::max<double>(tp, how.layout.ep) * cut)};
}

Held held_trained_parameters(const Job& job, const Execution& how) {
  if (how.lora_rank == 0) return held_parameters(job, how);
  return {adapter_parameters(job, how), 0};
}

double adapter_parameters(const Job& job, const Execution& how) {
  const double cut = how.layout.tp * times_fewer_layers(job, how);
  return how.lora_rank > 0 ? shape::adapter_parameters(job.model, how.lora_rank) / cut : 0;
}

Holders holders(const Job& job, const Execution& how) {
  const double cut = std::max(how.layout.tp, how.layout.ep) * how.layout.pp;
  return {replicas(job, how) * how.layout.cp, std::max(1.0, job.devices / cut)};
}

double device_parameters(const Job& job, const Execution& how) { return held_parameters(job, how).all(); }

double trained_parameters(const Job& job, const Execution& how) { return held_trained_parameters(job, how).all(); }

double sharded_parameters(const Job& job, const Execution& how) {
  return shard_of(held_parameters(job, how), holders(job, how));
}

double sharded_trained_parameters(const Job& job, const Execution& how) {
  return shard_of(held_trained_parameters(job, how), holders(job, how));
}

double forward_flops(const Outline& model, double tokens, bool language_head) {
  return forward_flops(model, Moments{tokens, tokens * tokens}, language_head);
}

double weight_tensors(const Outline& m) {
  const int64_t mlp = m.gated ? 3 : 2, routed = m.experts.count > 0 ? m.layers - m.dense_layers : 0;
  const int64_t shared = m.experts.shared > 0 ? mlp : 0;
  const int64_t of_experts = routed * (m.experts.count * mlp + shared + 1);  // and the router
  return static_cast<double>(6 * m.layers + (m.layers - routed) * mlp + of_experts + (m.tied ? 1 : 2));
}

double attention_flops(const Outline& model, const Moments& tokens) {
  const double width = static_cast<double>(model.heads * model.head_dim);
  return 4.0 * static_cast<double>(model.layers) * width * tokens.square / 2;
}

double forward_flops(const Outline& model, const Moments& tokens, bool language_head) {
  const double head = language_head ? 2.0 * shape::table_parameters(model) : 0;
  return tokens.mean * (2.0 * shape::active_block_parameters(model) + head) + attention_flops(model, tokens);
}

double attended_values(const Outline& m, const graph::Layout& layout) {
  const auto cut = [](int64_t heads, int ranks) { return std::max(1.0, static_cast<double>(heads) / ranks); };
  const bool latent = m.latent.kv_rank > 0;  // which every head makes keys and values of its own of
  const int ranks = layout.tp * (layout.cp_kind == shape::ContextKind::kUlysses ? layout.cp : 1);
  const double heads = layout.cp_kind == shape::ContextKind::kUlysses ? cut(m.heads, ranks) : 0;
  const double kv_heads = cut(latent ? m.heads : m.kv_heads, ranks);
  return (heads + kv_heads) * static_cast<double>(m.head_dim + (latent ? m.latent.value_dim : m.head_dim));
}

double train_passes(const Execution& how) {
  return (how.lora_rank > 0 ? 2.0 : 3.0) + (how.layout.recompute ? 1.0 : 0.0);
}

double replica_rows(const Job& job, const Execution& how) {
  const double in_all = job.load.rows / (job.work == Work::kTrain ? std::max(job.load.updates, 1) : 1);
  return std::max(1.0, std::ceil(in_all / replicas(job, how) - 1e-9));
}

double micro_batch_rows(const Job& job, const Execution& how) {
  const double available = replica_rows(job, how);
  if (how.layout.micro_batch > 0) return std::min(static_cast<double>(how.layout.micro_batch), available);
  return std::clamp(job.load.settings.micro_batch_tokens * how.layout.cp / job.load.row_tokens().mean, 1.0, available);
}

}  // namespace collimate::plan
