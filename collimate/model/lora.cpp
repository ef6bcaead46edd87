#include "collimate/model/lora.h"

#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/model/weights.h"
#include "collimate/shape/spec_builder.h"

namespace collimate::model {
namespace {

using shape::ModelShape;
using shape::ParamKind;
using shape::ParamSpec;
using shape::Part;

constexpr const char* kAllLinear = "all-linear";

// Returns whether a parameter is the weight of a linear layer in a block, which may have an adapter. PEFT gives none to
// routed experts and their router, which are no linear layers in transformers.
bool is_block_linear(const ModelShape& shape, const ParamSpec& spec) {
  if (spec.part == Part::kRouter || spec.part == Part::kExpertUp || spec.part == Part::kExpertDown) return false;
  return spec.kind == ParamKind::kLinear && spec.segment >= 1 && spec.segment <= static_cast<int>(shape.layers());
}

// Returns "model.layers.0.self_attn.q_proj" for "model.layers.0.self_attn.q_proj.weight".
std::string module_name(const ParamSpec& spec) { return spec.name.substr(0, spec.name.rfind('.')); }

bool is_a(const ParamSpec& spec) { return spec.name.ends_with(kAdapterA); }

bool is_named(const std::string& target, const std::string& module) {
  if (!module.ends_with(target)) return false;
  return module.size() == target.size() || module[module.size() - target.size() - 1] == '.';
}

bool is_target(const LoraOptions& lora, const ParamSpec& spec) {
  const std::string module = module_name(spec);
  return std::any_of(lora.targets.begin(), lora.targets.end(),
                     [&](const std::string& target) { return target == kAllLinear || is_named(target, module); });
}

// Returns the last parts of the names of the blocks' linear layers, each once.
std::vector<std::string> linear_names(const ModelShape& shape, const std::vector<ParamSpec>& params) {
  std::vector<std::string> names;
  for (const ParamSpec& spec : params) {
    if (!is_block_linear(shape, spec)) continue;
    const std::string module = module_name(spec), name = module.substr(module.rfind('.') + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void check_targets(const ModelShape& shape, const std::vector<ParamSpec>& params, const LoraOptions& lora) {
  for (const std::string& target : lora.targets) {
    const bool found = target == kAllLinear || std::any_of(params.begin(), params.end(), [&](const ParamSpec& spec) {
                         return is_block_linear(shape, spec) && is_named(target, module_name(spec));
                       });
    if (!found) base::throw_unknown_name("lora.targets", target, linear_names(shape, params), "all-linear or ");
  }
}

// Returns whether a parameter is of a module outside the blocks, other than a score or value head (always trained).
bool may_be_saved(const ParamSpec& spec) {
  constexpr Part kParts[] = {Part::kEmbedding, Part::kProjectIn,  Part::kPositions, Part::kEmbeddingNorm,
                             Part::kFinalNorm, Part::kProjectOut, Part::kHead};
  return std::ranges::find(kParts, spec.part) != std::end(kParts);
}

bool is_saved(const LoraOptions& lora, const ParamSpec& spec) {
  return may_be_saved(spec) && std::ranges::any_of(lora.modules_to_save, [&](const std::string& name) {
           return is_named(name, module_name(spec));
         });
}

void check_saved(ModelShape shape, const LoraOptions& lora) {
  if (lora.modules_to_save.empty()) return;
  shape.head = shape::Head::kLanguageModel;
  std::vector<std::string> modules, last_parts;
  for (const ParamSpec& spec : shape::param_specs(shape)) {
    if (!may_be_saved(spec) || (!modules.empty() && modules.back() == module_name(spec))) continue;
    modules.push_back(module_name(spec));
    last_parts.push_back(modules.back().substr(modules.back().rfind('.') + 1));
  }
  for (const std::string& name : lora.modules_to_save)
    if (std::ranges::none_of(modules, [&](const std::string& module) { return is_named(name, module); }))
      base::throw_unknown_choice("lora.modules_to_save", name, last_parts);
}

// Picks the targets among the layers that run as one.
std::vector<const ParamSpec*> targets_among(std::span<const ParamSpec> layer, const LoraOptions& lora) {
  std::vector<const ParamSpec*> chosen;
  for (const ParamSpec& spec : layer)
    if (is_target(lora, spec)) chosen.push_back(&spec);
  return chosen;
}

// Calls visit(the parameters of one linear layer of the blocks, or of layers that run as one).
template <typename Visit>
void for_each_block_linear(const ModelShape& shape, std::span<const ParamSpec> params, const Visit& visit) {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].fused > 0 && is_block_linear(shape, params[i]))
      visit(shape::fused_layer(params, static_cast<int64_t>(i)));
}

// Gives `of_rows`, which has a value or a row for each row of a weight, the order of those rows.
void order_as(const ParamSpec& weight, ParamSpec& of_rows) {
  of_rows.dims[0] = weight.dims[0];
  of_rows.runs_in = weight.segment;
  of_rows.interleaved = weight.interleaved;
  of_rows.grouped = weight.grouped;
  of_rows.paired = weight.paired;
  of_rows.trailing = weight.trailing;
}

void add_adapters(shape::Builder& out, std::span<const ParamSpec> layer, const LoraOptions& lora) {
  const std::vector<const ParamSpec*> chosen = targets_among(layer, lora);
  if (chosen.empty()) return;
  for (const ParamSpec* spec : chosen) {
    ParamSpec& a = out.add(adapter_name(*spec, kAdapterA), Part::kAdapter, ParamKind::kLinear,
                           {lora.rank_of(*spec), spec->sizes[1]});
    a.dims[1] = spec->dims[1];
    a.runs_in = spec->segment;
  }
  out.fuse(static_cast<int>(chosen.size()));
  for (const ParamSpec* spec : chosen)
    order_as(*spec, out.add(adapter_name(*spec, kAdapterB), Part::kAdapter, ParamKind::kLinear,
                            {spec->sizes[0], lora.rank_of(*spec)}));
  if (!lora.dora) return;
  for (const ParamSpec* spec : chosen)
    order_as(*spec, out.add(adapter_name(*spec, kAdapterLengths), Part::kAdapter, ParamKind::kNorm, {spec->sizes[0]}));
}

// Returns the segment of the adapters, which come behind the embedding, the blocks and the head.
int adapter_segment(const ModelShape& shape) { return static_cast<int>(shape.layers()) + 2; }

}  // namespace

float LoraOptions::scale() const {
  const auto by = static_cast<double>(rank);
  return static_cast<float>(alpha / (rslora ? std::sqrt(by) : by));
}

float LoraOptions::scale_of(const ParamSpec& weight) const {
  const auto found = own.find(module_name(weight));
  if (found == own.end()) return scale();
  return LoraOptions{.rank = found->second.rank, .alpha = found->second.alpha, .rslora = rslora}.scale();
}

int64_t LoraOptions::rank_of(const ParamSpec& weight) const {
  const auto found = own.find(module_name(weight));
  return found == own.end() ? rank : found->second.rank;
}

std::vector<ParamSpec> model_params(const ModelShape& shape, const LoraOptions& lora) {
  std::vector<ParamSpec> params = shape::param_specs(shape);
  if (!lora.on()) return params;
  check_targets(shape, params, lora);
  check_saved(shape, lora);
  shape::Builder adapters;
  adapters.begin_segment(adapter_segment(shape));
  for_each_block_linear(shape, params, [&](std::span<const ParamSpec> layer) { add_adapters(adapters, layer, lora); });
  std::vector<ParamSpec> added = adapters.take();
  params.insert(params.end(), added.begin(), added.end());
  return params;
}

std::vector<std::string> lora_targets(const ModelShape& shape, const LoraOptions& lora) {
  const bool all = std::find(lora.targets.begin(), lora.targets.end(), kAllLinear) != lora.targets.end();
  return all ? linear_names(shape, shape::param_specs(shape)) : lora.targets;
}

bool is_adapter_b(const ParamSpec& spec) { return is_adapter(spec) && spec.name.ends_with(kAdapterB); }

std::string adapter_name(const ParamSpec& weight, std::string_view end) {
  return fmt::format("base_model.model.{}{}", module_name(weight), end);
}

bool is_changed_by_training(const LoraOptions& lora, const ParamSpec& spec) {
  return !lora.on() || is_adapter(spec) || spec.part == Part::kScore || is_saved(lora, spec);
}

std::shared_ptr<const LoraLayer> find_lora(const Weights& weights, int first) {
  const LoraOptions& lora = weights.options().lora;
  if (!lora.on()) return nullptr;
  auto found = std::make_shared<LoraLayer>();
  found->dora = lora.dora;
  int64_t row = 0;
  for (const ParamSpec& spec : shape::fused_layer(weights.params(), first)) {
    if (const int b = weights.index_of(adapter_name(spec, kAdapterB)); b >= 0) {
      if (found->a < 0) found->a = weights.index_of(adapter_name(spec, kAdapterA));
      const int lengths = weights.index_of(adapter_name(spec, kAdapterLengths));
      found->parts.push_back({b, lora.rank_of(spec), row, spec.sizes[0], lengths});
      found->width += found->parts.back().rank;
      found->scales.resize(static_cast<size_t>(found->width), lora.scale_of(spec));
    }
    row += spec.sizes[0];
  }
  if (found->parts.empty()) return nullptr;
  found->scale = found->scales.front();
  const auto is_that_of_all = [&](float scale) { return scale == found->scale; };
  if (std::ranges::all_of(found->scales, is_that_of_all)) found->scales.clear();
  const ParamSpec& a = base::at(weights.params(), found->a);
  found->dropout = static_cast<float>(lora.dropout);
  found->noise = base::stable_hash(a.name);
  if (a.cut == 1) {
    COLLIMATE_CHECK(a.pieces.size() == 1, "{}", a.name);
    found->first_column = a.pieces.front().first;
  }
  return found;
}

namespace {

// Fills in the lengths of the rows of all layers that have any, from W, A and B.
void initialize_lengths(Weights& weights) {
  for (size_t i = 0; i < weights.own_params(); ++i) {
    const ParamSpec& spec = weights.params()[i];
    const int lengths = spec.sizes.size() == 2 ? weights.index_of(adapter_name(spec, kAdapterLengths)) : -1;
    if (lengths < 0) continue;
    const Weights::Held held = weights.hold(spec.segment);
    if (spec.absent()) continue;
    const std::vector<float> own = weights.row_lengths(static_cast<int>(i));
    weights.fill(lengths, [&](std::span<float> values) { std::copy(own.begin(), own.end(), values.begin()); });
  }
}

}  // namespace

void initialize_lora(Weights& weights, uint64_t seed) {
  static const auto kPurpose = static_cast<uint32_t>(base::stable_hash("initial adapters"));
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const ParamSpec& spec = weights.params()[i];
    if (!is_adapter(spec)) continue;
    weights.fill(static_cast<int>(i), [&](std::span<float> values) {
      std::fill(values.begin(), values.end(), 0.0F);
      if (!is_a(spec)) return;
      const float bound = 1.0F / std::sqrt(static_cast<float>(weights.whole_params()[i].sizes[1]));
      const uint64_t name = base::stable_hash(spec.name);
      for (size_t j = 0; j < values.size(); ++j)
        values[j] = bound * (2 * base::uniform(seed, kPurpose, name, static_cast<uint32_t>(j)) - 1);
    });
  }
  if (weights.options().lora.dora) initialize_lengths(weights);
  weights.commit();
}

void add_low_rank(float scale, std::span<const float> up, std::span<const float> down, std::span<float> row) {
  for (size_t k = 0; k < up.size(); ++k) {
    const float factor = scale * up[k];
    for (size_t c = 0; c < row.size(); ++c) row[c] += factor * down[k * row.size() + c];
  }
}

void set_length(float length, std::span<float> row) {
  double squares = 0;
  for (const float value : row) squares += double{value} * value;
  if (squares == 0) return;
  const double factor = length / std::sqrt(squares);
  for (float& value : row) value = static_cast<float>(factor * value);
}

std::vector<float> merged_values(const Weights& weights, int index) {
  const tensor::HostRead own = weights.values(index);
  std::vector<float> merged(own.begin(), own.end());
  const LoraOptions& lora = weights.options().lora;
  const ParamSpec& spec = base::at(weights.params(), index);
  const int b =
      lora.on() && is_block_linear(weights.shape(), spec) ? weights.index_of(adapter_name(spec, kAdapterB)) : -1;
  if (b < 0) return merged;
  // These are B [out, rank] and A [rank, in].
  const tensor::HostRead up = weights.values(b), down = weights.values(weights.index_of(adapter_name(spec, kAdapterA)));
  std::vector<float> lengths;  // [out] with DoRA
  if (lora.dora) {
    const tensor::HostRead values = weights.values(weights.index_of(adapter_name(spec, kAdapterLengths)));
    lengths.assign(values.begin(), values.end());
  }
  const auto rows = static_cast<size_t>(spec.sizes[0]), columns = static_cast<size_t>(spec.sizes[1]),
             rank = static_cast<size_t>(lora.rank_of(spec));
  const float scale = lora.scale_of(spec);
  for (size_t r = 0; r < rows; ++r) {
    const std::span<float> row = std::span(merged).subspan(r * columns, columns);
    add_low_rank(scale, up.span().subspan(r * rank, rank), down.span(), row);
    if (lora.dora) set_length(lengths[r], row);
  }
  return merged;
}

}  // namespace collimate::model
