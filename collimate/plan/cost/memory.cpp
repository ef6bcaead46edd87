#include "collimate/plan/cost/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "collimate/plan/cost/stages.h"
#include "collimate/plan/digits.h"

namespace collimate::plan {
namespace {

// Returns the elements of so many experts of one layer.
double routed_elements(const shape::Outline& m, int64_t experts) {
  return (m.gated ? 3.0 : 2.0) * static_cast<double>(m.hidden * m.experts.intermediate * experts);
}

double sum(const std::vector<MemoryItem>& items) {
  return std::accumulate(items.begin(), items.end(), 0.0,
                         [](double total, const MemoryItem& item) { return total + item.bytes; });
}

constexpr double kPrefillStep = 8192;  // tokens

// Returns the elements of a token's queries, keys, values and attention outputs; latent attention keeps the compressed
// ones too.
double attention_values(const shape::Outline& m) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const shape::Latent& l = m.latent;
  if (l.kv_rank > 0)
    return real(m.heads) * 2 * real(m.head_dim + l.value_dim) + real(l.q_rank + l.kv_rank + l.rope_dim);
  return 2 * real(m.heads + m.kv_heads) * real(m.head_dim);
}

constexpr double kMomentBytes = 8;  // of an element: both moments of Adam in fp32

// Returns the values that one layer keeps of a token for its backward. Attention stores no scores, and counts at least
// as plain attention that is as wide as the layer. Routed tokens are copied to their experts and back.
double activation_values(const shape::Outline& m) {
  const double hidden = static_cast<double>(m.hidden);
  const double inner = static_cast<double>(
      m.experts.count > 0 ? m.experts.per_token * m.experts.intermediate + m.experts.shared : m.intermediate);
  const double routed = m.experts.count > 0 ? 2 * static_cast<double>(m.experts.per_token) * hidden : 0;
  const double ahead = m.norms_around ? 2 * hidden : 0;  // of the norms behind both halves
  return 5 * hidden + ahead + std::max(4 * hidden, attention_values(m)) + routed + (m.gated ? 4 : 2) * inner;
}

// Returns how many of these values attention and activations give, which cost least to compute again; shared experts
// keep theirs.
double selected_values(const shape::Outline& m) {
  const double inner =
      static_cast<double>(m.experts.count > 0 ? m.experts.per_token * m.experts.intermediate : m.intermediate);
  const int64_t attended = m.latent.kv_rank > 0 ? m.latent.value_dim : m.head_dim;
  return static_cast<double>(m.heads * attended) + inner;
}

// Returns the bytes of a device's share of one layer's activations for so many tokens.
double layer_bytes(const Job& job, const Execution& how, double tokens) {
  return tokens * job.gpu.value_bytes * activation_values(job.model) / how.layout.tp;
}

double selected_bytes(const Job& job, const Execution& how, double tokens) {
  return tokens * job.gpu.value_bytes * selected_values(job.model) / how.layout.tp;
}

// Returns the bytes of a token's logits, which are held in fp32 and in the activations' type.
double logit_bytes(const Job& job, const Execution& how) {
  if (!job.language_head) return 0;
  return (4 + job.gpu.value_bytes) * static_cast<double>(job.model.vocabulary) / how.layout.tp;
}

// Returns the model with one layer, routed or plain, so that the block's parameters are that layer's.
shape::Outline layer_of(const shape::Outline& model, bool routed) {
  shape::Outline one = model;
  one.layers = 1;
  one.dense_layers = 0;
  if (!routed) one.experts = {};
  return one;
}

// Returns the elements of the two largest neighbours among a stage's pieces on one device, ZeRO aside.
double two_pieces(const Job& job, const Execution& how) {
  const shape::Outline& m = job.model;
  double layer = 0;
  if (m.experts.count == 0 || m.dense_layers > 0) layer = shape::block_parameters(layer_of(m, false)) / how.layout.tp;
  if (m.experts.count > 0) {
    const shape::Outline one = layer_of(m, true);
    const double dense = shape::active_block_parameters(one) - routed_elements(m, m.experts.per_token);
    const double cut = std::max(how.layout.tp, how.layout.ep);
    layer = std::max(layer, dense / how.layout.tp + routed_elements(m, m.experts.count) / cut);
  }
  return layer + std::max(layer, shape::table_parameters(m) / how.layout.tp);
}

// Returns the elements of two of the largest pieces in which new weights pass.
double two_passing(const Job& job, const Execution& how) {
  const shape::Outline& m = job.model;
  const double table = shape::table_parameters(m);
  double piece = std::max(table, routed_elements(m, 1));
  if (m.experts.count == 0 || m.dense_layers > 0) piece = std::max(piece, shape::block_parameters(layer_of(m, false)));
  if (m.experts.count > 0)
    piece =
        std::max(piece, shape::active_block_parameters(layer_of(m, true)) - routed_elements(m, m.experts.per_token));
  return 2 * piece / how.layout.tp;
}

// Adds what the ranks of cp exchange for one layer, in training with its gradients. Keys and values that go around a
// ring of GPUs are never whole; CPUs gather them.
void add_exchanged(const Job& job, const Execution& how, MemoryBound& bound) {
  if (how.layout.cp <= 1 || job.work == Work::kGenerate) return;
  if (how.layout.cp_kind == shape::ContextKind::kGather && !job.gpu.cpu) return;
  const double tokens = micro_batch_rows(job, how) * job.load.longest();
  const double copies = job.work == Work::kTrain ? 2 : 1;
  bound.transient.push_back(
      {"attention over cp", copies * tokens * job.gpu.value_bytes * attended_values(job.model, how.layout)});
}

// Returns the workspace of kernels and collectives, of CPUs or of GPUs.
double workspace_of(const Job& job, const Constants& c) {
  return job.gpu.cpu ? c.cpu_workspace_bytes : c.workspace_bytes;
}

// Adds the pieces in which new weights pass; adapters pass all at once.
void add_passing(const Job& job, const Execution& how, const Constants& c, MemoryBound& bound) {
  if (!job.passes) return;
  const double elements = how.lora_rank > 0 ? adapter_parameters(job, how) : two_passing(job, how);
  bound.passing = {{"new weights", job.gpu.value_bytes * elements}, {"workspace", workspace_of(job, c)}};
}

// Adds the gradients, the optimizer state and the activations of a training micro-batch.
void add_training(const Job& job, const Execution& how, const Constants& c, MemoryBound& bound) {
  const double whole = trained_parameters(job, how), sharded = sharded_trained_parameters(job, how);
  bound.resident.push_back({"gradients", (how.layout.zero >= 2 ? sharded : whole) * c.gradient_bytes});
  if (how.layout.zero >= 2 && sharded < whole)
    bound.transient.push_back({"gradients on their way", job.gpu.value_bytes * std::min(whole, two_pieces(job, how))});
  if (!how.layout.offload)
    bound.resident.push_back({"optimizer", (how.layout.zero >= 1 ? sharded : whole) * c.optimizer_bytes});
  else if (job.gpu.cpu)  // the moments come from a file by segment, and the weights are the master copy
    bound.transient.push_back({"optimizer on its way", kMomentBytes * std::min(whole, two_pieces(job, how))});
  const double rows = micro_batch_rows(job, how);
  const double tokens = rows * job.load.longest() / how.layout.cp;
  const double micro_batches = replica_rows(job, how) / rows;
  const double in_flight = kept_micro_batches(how, micro_batches);
  const double layers = layers_on_device(job, how);
  const double full = layer_bytes(job, how, tokens);
  const double selected = how.selective ? selected_bytes(job, how, tokens) : 0;  // of one layer at a time
  const double kept =
      how.layout.recompute ? tokens * job.gpu.value_bytes * static_cast<double>(job.model.hidden) : full - selected;
  // `ends` goes into the layers and comes out of them, with the last norm and the gradients.
  const double ends = 6 * tokens * job.gpu.value_bytes * static_cast<double>(job.model.hidden) / how.layout.tp;
  bound.transient.push_back(
      {"activations", in_flight * layers * kept + (how.layout.recompute ? full : selected) + ends});
}

double logits_bytes(const Job& job, const Execution& how) {
  if (!job.language_head || (how.stage >= 0 && how.stage + 1 < how.layout.pp)) return 0;
  const double tokens = micro_batch_rows(job, how) * job.load.longest() / how.layout.cp;
  const double gradient = job.work == Work::kTrain ? 4 * static_cast<double>(job.model.vocabulary) / how.layout.tp : 0;
  // The head may walk a long row in slices of 8192 tokens.
  return std::min(tokens, 8192.0) * (logit_bytes(job, how) + gradient);
}

// Bounds the memory of the stage that `how` means.
MemoryBound memory_of_stage(const Job& job, const Execution& how, const Constants& c, double concurrent) {
  MemoryBound bound;
  const double weights = job.gpu.weight_bytes * device_parameters(job, how);
  const bool sharded = how.layout.zero >= 3 && job.work != Work::kGenerate && replicas(job, how) > 1;
  bound.resident.push_back({"weights", sharded ? job.gpu.weight_bytes * sharded_parameters(job, how) : weights});
  if (how.lora_rank > 0) bound.resident.push_back({"adapters", job.gpu.weight_bytes * adapter_parameters(job, how)});
  if (sharded) bound.transient.push_back({"gathered layers", job.gpu.weight_bytes * two_pieces(job, how)});
  if (job.work == Work::kTrain) add_training(job, how, c, bound);
  if (job.work == Work::kGenerate) {
    const double tokens = concurrent > 0 || job.load.settings.pool_tokens > 0 ? pool_tokens(job, concurrent) : 0;
    bound.transient.push_back({"keys and values", tokens * cached_bytes(job, how)});
    const double step = std::min(kPrefillStep, replica_rows(job, how) * job.load.prompt.largest());
    bound.transient.push_back({"prefill", layer_bytes(job, how, step)});
    bound.transient.push_back({"logits", concurrent * logit_bytes(job, how)});
  } else {
    bound.transient.push_back({"logits", logits_bytes(job, how)});
  }
  if (job.work == Work::kScore) {
    const double tokens = micro_batch_rows(job, how) * job.load.longest() / how.layout.cp;
    bound.transient.push_back({"activations", layer_bytes(job, how, tokens)});
  }
  add_exchanged(job, how, bound);
  bound.transient.push_back({"workspace", workspace_of(job, c)});
  add_passing(job, how, c, bound);
  return bound;
}

}  // namespace

double MemoryBound::resident_bytes() const { return sum(resident); }
const std::vector<MemoryItem>& MemoryBound::largest_phase() const {
  return sum(passing) > sum(transient) ? passing : transient;
}
double MemoryBound::working_bytes() const { return sum(transient); }
double MemoryBound::transient_bytes() const { return sum(largest_phase()); }

MemoryBound memory_of(const Job& job, const Execution& how, const Constants& c, double concurrent) {
  if (how.layout.stages.empty()) return memory_of_stage(job, how, c, concurrent);
  MemoryBound fullest;
  for (int stage = 0; stage < how.layout.pp; ++stage) {
    Execution one = how;
    one.stage = stage;
    MemoryBound bound = memory_of_stage(job, one, c, concurrent);
    if (stage == 0 || bound.total() > fullest.total()) fullest = std::move(bound);
  }
  return fullest;
}

double pool_tokens(const Job& job, double rows) {
  if (const double set = job.load.settings.pool_tokens; set > 0) return std::max(set, job.load.longest());
  return std::max(rows * job.load.row_tokens().mean, job.load.longest());
}

double cached_values(const Job& job, const Execution& how) {
  const shape::Outline& m = job.model;
  // Latent keys cannot be cut by heads: every rank of tp holds them.
  const double cut = m.latent.kv_rank > 0 ? 1 : std::min<double>(how.layout.tp, static_cast<double>(m.kv_heads));
  return shape::cached_values(m) * layers_on_device(job, how) / cut;
}

double cached_bytes(const Job& job, const Execution& how) {
  const double set = job.load.settings.cached_value_bytes;
  return (set > 0 ? set : job.gpu.value_bytes) * cached_values(job, how);
}

double concurrency(const Job& job, const Execution& how, double free_bytes) {
  const double row = job.load.row_tokens().mean * cached_bytes(job, how) + logit_bytes(job, how);
  return free_bytes > 0 ? free_bytes / row : 0;
}

double usable_bytes(const DeviceKind& gpu, const Constants& c) { return gpu.memory_bytes * c.usable_memory; }

std::string misfit(const MemoryBound& bound, double other_bytes, const DeviceKind& gpu, const Constants& c) {
  const double total = bound.total() + other_bytes;
  if (total <= usable_bytes(gpu, c)) return "";
  MemoryItem largest = largest_item(bound.resident, bound.largest_phase());
  if (other_bytes >= largest.bytes) largest = {"other models", other_bytes};
  return fmt::format("{} GB on a device of {} GB ({} usable), of which {} {} GB", three_digits(total / 1e9, 1),
                     three_digits(gpu.memory_bytes / 1e9, 1), three_digits(usable_bytes(gpu, c) / 1e9, 1), largest.what,
                     three_digits(largest.bytes / 1e9, 1));
}

}  // namespace collimate::plan
