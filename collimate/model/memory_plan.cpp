#include "collimate/model/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/latent.h"
#include "collimate/model/passes.h"
#include "collimate/model/share.h"
#include "collimate/shape/param_spec.h"
#include "collimate/tensor/counting_device.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::model {
namespace {

using shape::ModelShape;
using tensor::allocated_bytes;

constexpr int64_t kFloat = sizeof(float);

constexpr int64_t kEndless = int64_t{1} << 42;  // floats of an arena that is only counted and takes no memory

// Holds the bytes of trained and frozen segments, and what training keeps of the former on the rank with the most.
struct ValueBytes {
  int64_t trained = 0, frozen = 0;
  int64_t gradients = 0;      // of the gradients of whole segments
  int64_t shares = 0;         // of one number for each weight that the rank updates
  int64_t largest_share = 0;  // of these, in the segment with the most
  int64_t passing = 0;        // of whole gradients that exist at once, where segments have theirs one after the other
};

std::vector<bool> trained_segments(const WeightsOptions& options, const std::vector<shape::ParamSpec>& specs) {
  std::vector<bool> trained(shape::segment_floats(specs).size(), false);
  for (const shape::ParamSpec& spec : specs)
    if (options.trained && !spec.absent() && is_changed_by_training(options.lora, spec))
      base::at(trained, spec.segment) = true;
  return trained;
}

// Returns the first segment of experts that ranks share, or the number of segments if there is none. Such a segment has
// copies on other ranks than the rest has.
int first_of_shared_experts(const WeightsOptions& options, const std::vector<shape::ParamSpec>& specs) {
  int last = -1;  // last of all other segments
  for (const shape::ParamSpec& spec : specs)
    if (spec.expert < 0 || !options.ranks.experts.several()) last = std::max(last, spec.segment);
  return last + 1;
}

// Returns how many floats of a segment the rank with the most keeps: in the adapters' segment all of them (Weights).
int64_t most_kept(const WeightsOptions& options, const std::vector<shape::ParamSpec>& specs, size_t segment,
                  int64_t floats) {
  const auto is_adapters = [&](const shape::ParamSpec& spec) {
    return spec.segment == static_cast<int>(segment) && is_adapter(spec);
  };
  const bool of_experts = static_cast<int>(segment) >= first_of_shared_experts(options, specs);
  const int ranks = of_experts ? options.ranks.expert_shares.ranks : options.ranks.shares.ranks;
  const DataShares last{.rank = ranks - 1, .ranks = ranks};
  return std::ranges::any_of(specs, is_adapters) ? floats : last.kept(floats).count();
}

// Holds the bytes of a segment: of its values, of those values that are in no panel, and of its panels.
struct HeldBytes {
  int64_t values = 0, small = 0, panels = 0;
  bool shared = false;
  int experts = -1;  // the segment of its experts, which its pass holds too; -1: none
};

std::vector<HeldBytes> held_bytes(const ModelShape& shape, const WeightsOptions& options,
                                  const std::vector<shape::ParamSpec>& specs) {
  const std::vector<int64_t> floats = shape::segment_floats(specs);
  const int first_of_experts = first_of_shared_experts(options, specs);
  std::vector<HeldBytes> held(floats.size());
  for (size_t s = 0; s < floats.size(); ++s) {
    held[s].values = allocated_bytes(floats[s] * kFloat);
    held[s].shared = most_kept(options, specs, s, floats[s]) < floats[s];
    const int own = static_cast<int>(s), experts = first_of_experts + own - 1;
    if (own > 0 && own < first_of_experts && experts < static_cast<int>(floats.size())) held[s].experts = experts;
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    HeldBytes& of = base::at(held, specs[i].segment);
    const bool linear = !specs[i].absent() && shape::is_linear(shape, specs[i]);
    if (!linear || specs[i].kind == shape::ParamKind::kEmbedding) of.small += specs[i].count() * kFloat;
    if (!linear || specs[i].fused == 0 || is_of_base(options, specs, specs[i].segment)) continue;
    const int64_t rows = shape::fused_rows(specs, static_cast<int64_t>(i));
    of.panels += allocated_bytes(
        tensor::packed_bytes({}, rows, specs[i].sizes[1], compute_of(options, specs[i]), chunks_of(options, specs[i])));
  }
  for (HeldBytes& of : held) of.small = allocated_bytes(of.small);
  return held;
}

// Holds the bytes of gathered values and of panels that exist at once.
struct Present {
  int64_t gathered = 0, panels = 0;
  void add(const HeldBytes& of) {
    if (of.shared) gathered += of.values, panels += of.panels;
  }
  void raise(const Present& other) {
    gathered = std::max(gathered, other.gathered), panels = std::max(panels, other.panels);
  }
};

Present present_bytes(const std::vector<HeldBytes>& held, bool head_is_embedding, bool whole) {
  Present always, beside;  // segments that no ranks share; the head, which a training pass holds beside another segment
  for (const HeldBytes& of : held) always.panels += of.shared ? 0 : of.panels;
  if (head_is_embedding && held.front().shared) beside = {held.front().values, held.front().panels};
  Present most, behind;  // of the pass with the most; for inference, of all segments held so far
  for (size_t s = 0; s < held.size(); ++s) {
    Present pass = s == 0 ? Present() : beside;
    pass.add(held[s]);
    if (held[s].experts >= 0) pass.add(base::at(held, held[s].experts));
    most.raise(pass);
    if (!whole || !held[s].shared) continue;
    most.gathered = std::max(most.gathered, behind.gathered + held[s].values + held[s].small);
    behind = {behind.gathered + held[s].small, behind.panels + held[s].panels};
    most.panels = std::max(most.panels, behind.panels);
  }
  return {most.gathered, always.panels + most.panels};
}

ValueBytes value_bytes(const ModelShape& shape, const WeightsOptions& options,
                       const std::vector<shape::ParamSpec>& specs, const Sharing& sharing) {
  const std::vector<int64_t> floats = shape::segment_floats(specs);
  const std::vector<bool> trained = trained_segments(options, specs);
  const int first_of_experts = first_of_shared_experts(options, specs);
  // The gradient of an embedding that is also the head exists from the head's backward on.
  const bool begins_first = trained[0] && shape::is_linear(shape, specs.front());
  ValueBytes bytes;
  for (size_t s = 0; s < floats.size(); ++s) {
    if (floats[s] == 0 || is_of_base(options, specs, static_cast<int>(s))) continue;
    const int64_t whole = allocated_bytes(floats[s] * kFloat);
    (trained[s] ? bytes.trained : bytes.frozen) += allocated_bytes(most_kept(options, specs, s, floats[s]) * kFloat);
    bytes.gradients += trained[s] ? whole : 0;
    if (!trained[s]) continue;
    const bool of_experts = static_cast<int>(s) >= first_of_experts;
    const int copies = of_experts ? std::max(1, sharing.ranks / options.ranks.experts.place.ranks) : sharing.ranks;
    const int ranks = sharing.zero > 0 ? copies : 1;
    const int64_t share = allocated_bytes(share_of(floats[s], ranks - 1, ranks).count() * kFloat);
    bytes.shares += share;
    bytes.largest_share = std::max(bytes.largest_share, share);
    const size_t experts = static_cast<size_t>(first_of_experts) + s - 1;  // of this block's segment
    const bool has_own = !of_experts && s > 0 && experts < floats.size();
    const int64_t at_once = whole + (has_own ? allocated_bytes(floats[experts] * kFloat) : 0);
    if (s > 0 || !begins_first) bytes.passing = std::max(bytes.passing, at_once);
  }
  if (begins_first) bytes.passing += allocated_bytes(floats[0] * kFloat);
  return bytes;
}

// Returns the bytes of the factors of all rows (RowFactors), and of what the layer with the most needs to make them.
int64_t factor_bytes(const WeightsOptions& options, const std::vector<shape::ParamSpec>& specs) {
  if (!options.lora.dora) return 0;
  std::set<std::string> names;
  for (const shape::ParamSpec& spec : specs) names.insert(spec.name);
  int64_t bytes = 0, most = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].fused == 0 || specs[i].sizes.size() != 2 || specs[i].absent()) continue;
    bool has_lengths = false;
    for (const shape::ParamSpec& part : shape::fused_layer(specs, static_cast<int64_t>(i))) {
      if (!names.contains(adapter_name(part, kAdapterLengths))) continue;
      has_lengths = true;
      most = std::max(most, allocated_bytes(std::min(part.sizes[0], kFactorRows) * part.sizes[1] * kFloat) +
                                allocated_bytes(part.sizes[0] * kFloat));
    }
    if (has_lengths) bytes += allocated_bytes(2 * shape::fused_rows(specs, static_cast<int64_t>(i)) * kFloat);
  }
  return bytes + most;
}

}  // namespace

std::vector<tensor::MemoryItem> weights_memory(const ModelShape& shape, const WeightsOptions& options,
                                               std::optional<Sharing> sharing, bool whole) {
  const auto specs = shape::local(model_params(shape, options.lora), shape, options.ranks.place());
  const ValueBytes bytes = value_bytes(shape, options, specs, sharing.value_or(Sharing()));
  const bool head_is_embedding = options.trained && shape::is_linear(shape, specs.front());
  const Present present = present_bytes(held_bytes(shape, options, specs), head_is_embedding, whole);
  std::vector<tensor::MemoryItem> items;
  if (bytes.trained > 0) items.push_back({values_purpose(true), bytes.trained});
  if (bytes.frozen > 0) items.push_back({values_purpose(false), bytes.frozen});
  if (present.gathered > 0) items.push_back({"gathered", present.gathered});
  items.push_back({"panels", present.panels});
  if (const int64_t factors = factor_bytes(options, specs); factors > 0) items.push_back({"factors", factors});
  if (bytes.trained == 0 || !sharing) return items;
  const bool keeps_shares = sharing->zero > 1 && sharing->ranks > 1;
  items.push_back({"gradient", keeps_shares ? bytes.shares + bytes.passing : bytes.gradients});
  items.push_back({"optimizer", 2 * (sharing->away ? bytes.largest_share : bytes.shares)});
  if (sharing->averages) items.push_back({"average", bytes.trained});
  return items;
}

int64_t kv_cache_bytes(const ModelShape& shape, tensor::KvType type, int64_t blocks) {
  int64_t bytes = 0;
  const std::vector<tensor::KvLayout> layouts = kv_layouts(shape, type);
  for (size_t l = 0; l < layouts.size(); ++l)
    if (has_layer(shape, l)) bytes += allocated_bytes(blocks * tensor::kv_block_floats({}, layouts[l]) * kFloat);
  return bytes;
}

struct PassPlan::Counted {
  tensor::CountingDevice device;
  tensor::Exec exec{.device = &device};
  std::shared_ptr<Weights> weights;
  Passes passes;
  Turns turns;  // empty, as nobody reads it

  Counted(const ModelShape& shape, WeightsOptions options, const tensor::Device& of)
      : device(of), weights(counted_weights(shape, std::move(options))), passes(weights, exec) {}

  std::shared_ptr<Weights> counted_weights(const ModelShape& shape, WeightsOptions options) const {
    options.mapped = false;
    model::ModelRanks& ranks = options.ranks;
    ranks.tensor.group = ranks.stages.group = ranks.experts.group = nullptr;
    ranks.shares = ranks.expert_shares = {};
    options.based = Based::kNo;
    options.base = nullptr;
    return std::make_shared<Weights>(shape, std::move(options), exec);
  }
  tensor::Arena arena() const {
    tensor::Arena endless(device);
    endless.reserve(kEndless);
    return endless;
  }
  // Makes an input of so many tokens, or of a context rank's part of them. Only their number is ever read.
  std::unique_ptr<StepInput> input(int64_t tokens, int64_t blocks, const ContextRanks& context,
                                   bool noisy = false) const {
    TokenBatch batch;
    if (noisy) batch.noise.resize(static_cast<size_t>(tokens));
    batch.ids.resize(static_cast<size_t>(tokens));
    batch.positions.resize(static_cast<size_t>(tokens));
    batch.starts = {0, static_cast<int32_t>(tokens)};
    Runs runs;
    runs.blocks = blocks;
    if (context.several())
      runs.cut = batch.cut =
          std::make_shared<ContextCut>(batch.starts, ContextRanks{.ranks = context.ranks, .kind = context.kind});
    return std::make_unique<StepInput>(exec, own_tokens(batch), std::move(runs));
  }
  // Makes an input of tokens of one sequence, behind `earlier` ones of it that are cached.
  std::unique_ptr<StepInput> cached_input(int64_t tokens, int64_t earlier) const {
    TokenBatch batch;
    batch.ids.resize(static_cast<size_t>(tokens));
    batch.positions.resize(static_cast<size_t>(tokens));
    Runs runs;
    runs.tables.resize(static_cast<size_t>(tensor::KvLayout::blocks_for(earlier + tokens)));
    std::iota(runs.tables.begin(), runs.tables.end(), 0);
    runs.runs.push_back({0, tokens, earlier, runs.tables.data()});
    return std::make_unique<StepInput>(exec, batch, std::move(runs));
  }
};

PassPlan::PassPlan(const ModelShape& shape, const WeightsOptions& options, const tensor::Device& device)
    : counted_(std::make_unique<Counted>(shape, options, device)) {}
PassPlan::~PassPlan() = default;

PassFloats PassPlan::inference(int64_t tokens, int64_t blocks, const ContextRanks& context) {
  const auto [at, is_new] = known_.try_emplace({tokens, blocks, context.ranks, context.kind, -1});
  if (!is_new) return at->second;
  Passes& passes = counted_->passes;
  passes.workspace() = counted_->arena();
  if (blocks > 0 || !shape::keeps_latents(counted_->weights->shape())) {
    passes.infer(*counted_->input(tokens, blocks, context), &counted_->turns, nullptr);
  } else {
    KvCache cache(counted_->weights->shape(), kv_type(counted_->weights->options().compute), 1, counted_->exec);
    passes.infer(*counted_->cached_input(tokens, kMostExpanded), &counted_->turns, &cache);
  }
  return at->second = {.workspace = passes.workspace().peak_floats()};
}

PassFloats PassPlan::training(int64_t tokens, int64_t blocks, Recompute recompute, const ContextRanks& context) {
  const auto [at, is_new] =
      known_.try_emplace({tokens, blocks, context.ranks, context.kind, static_cast<int>(recompute)});
  if (!is_new) return at->second;
  Passes& passes = counted_->passes;
  const bool noisy = counted_->weights->options().lora.dropout > 0;
  for (int run = 0; run < passes.decoder().runs(); ++run) {  // each pass has room for the largest
    passes.workspace() = counted_->arena();
    passes.gradients() = counted_->arena();
    ForwardRecord::Impl record;
    record.input = counted_->input(tokens, blocks, context, noisy);
    record.run = run;
    record.recompute = recompute;
    record.activations = std::make_unique<tensor::Arena>(counted_->arena());
    const Slot& hidden = passes.record(record, &counted_->turns, nullptr);
    passes.backward(record, &counted_->turns, hidden.value, [](int) {});
    PassFloats& most = at->second;
    most.workspace = std::max(most.workspace, passes.workspace().peak_floats());
    most.activations = std::max(most.activations, record.activations->peak_floats());
    most.gradients = std::max(most.gradients, passes.gradients().peak_floats());
  }
  return at->second;
}

std::vector<tensor::MemoryItem> pass_memory(const ModelShape& shape, int64_t tokens, const PassFloats& floats,
                                            int64_t under_way) {
  const auto arena = [](int64_t count) { return count == 0 ? 0 : allocated_bytes(count * kFloat); };
  std::vector<tensor::MemoryItem> items = {
      {"workspace", arena(floats.workspace) + allocated_bytes(tokens * shape.table_width() * kFloat)}};
  if (floats.activations > 0)
    items.push_back({"activations", under_way * arena(floats.activations) + arena(floats.gradients)});
  return items;
}

int64_t recorded_logits_bytes(const ModelShape& shape, int64_t predicted, const shape::TensorRank& place) {
  const int64_t bytes = predicted * shape::vocabulary_piece(shape, place).count * kFloat;
  return shape.head != shape::Head::kLanguageModel || bytes > kMostRecordedLogitBytes ? 0 : allocated_bytes(bytes);
}

void add_pass_scratch(const ModelShape& shape, int reduction_chunks, int64_t tokens, int64_t backward_keys,
                      tensor::ScratchNeed& need) {
  const auto add = [&](const tensor::LinearSize& size, tensor::ScratchNeed& to) {
    tensor::add_linear_scratch(size, to);
    if (backward_keys > 0) tensor::add_linear_backward_scratch(size, to);
  };
  tensor::ScratchNeed alone(1);  // one thread computes a small expert
  std::set<std::pair<int64_t, int64_t>> known, known_alone;
  const std::vector<shape::ParamSpec> specs = shape::param_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) {
    const shape::ParamSpec& spec = specs[i];
    if (spec.fused == 0 || spec.kind != shape::ParamKind::kLinear || spec.part == shape::Part::kHead) continue;
    const tensor::LinearSize size{tokens, shape::fused_rows(specs, static_cast<int64_t>(i)), spec.sizes[1],
                                  reduction_chunks};
    if (known.emplace(size.n, size.k).second) add(size, need);
    if (spec.expert >= 0 && known_alone.emplace(size.n, size.k).second) add(size, alone);
  }
  need.in_each(alone);
  if (backward_keys == 0) return;
  for (const shape::Block& block : shape.blocks)
    tensor::add_attention_backward_scratch(backward_keys, block.attention.head_dim, block.attention.value_dim(), need);
}

}  // namespace collimate::model
