#include "collimate/model/peft_adapters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/model/file_order.h"
#include "collimate/model/weights.h"
#include "collimate/shape/text_part.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using shape::ParamSpec;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kFrozen = ".base_layer.weight";

// Describes a module of a block that holds parameters of all its experts: the names of PEFT's wrappers around it, the
// inner one first if there are two, and its parameters by their names in the block.
struct FusedModule {
  std::vector<std::string> wrappers;
  std::vector<FusedParameter> parameters;
};

// Returns the modules in which transformers 5 holds experts, under "mlp" or the family's own word, and those of earlier
// versions, in which one module holds each parameter that files have.
std::vector<FusedModule> fused_modules(const shape::ModuleNames& names, const shape::Experts& how, int64_t hidden) {
  const int64_t up_rows =
      names.stacked_up.empty() ? std::ssize(names.expert_up) * how.intermediate : 2 * how.intermediate;
  FusedParameter up{"", how.count, up_rows, hidden, names.expert_up};
  FusedParameter down{"", how.count, hidden, how.intermediate, {names.expert_down}};
  std::vector<FusedModule> modules;
  for (const std::string& module : {std::string("mlp.experts"), names.experts.substr(0, names.experts.rfind('.'))}) {
    up.name = module + ".gate_up_proj";
    down.name = module + ".down_proj";
    modules.push_back({{module + ".base_layer", module}, {up, down}});
  }
  constexpr std::string_view kWeight = ".weight";
  if (!names.stacked_up.ends_with(kWeight)) return modules;
  up.name = names.stacked_up;
  down.name = names.stacked_down;
  for (const FusedParameter& one : {up, down})
    modules.push_back({{one.name.substr(0, one.name.size() - kWeight.size())}, {one}});
  return modules;
}

std::string last_parts(const std::vector<FusedParameter>& parameters) {
  std::vector<std::string> parts;
  for (const FusedParameter& parameter : parameters)
    parts.push_back(parameter.name.substr(parameter.name.rfind('.') + 1));
  return fmt::format("{}", fmt::join(parts, " or "));
}

std::string sizes_text(const MatrixInTensor& matrix) {
  return matrix.entry == nullptr ? "none" : fmt::format("[{}]", fmt::join(matrix.sizes, ", "));
}

std::string fused_sizes(const FusedLayers& fused) {
  std::vector<std::string> texts;
  for (const auto& [module, layer] : fused) texts.push_back(sizes_text(layer.a) + " and " + sizes_text(layer.b));
  return fmt::format("{}", fmt::join(texts, "; "));
}

// Says which parameter each of the adapters belongs to.
struct FusedMatch {
  FusedOrder order;
  std::vector<const FusedParameter*> parameters;
};

// Matches adapters with parameters by their sizes. Returns nothing if an adapter fits no parameter, or two fit the same
// one. At most one of two parameters has the sizes of an adapter.
std::optional<FusedMatch> match_fused(const FusedLayers& fused, const std::vector<FusedParameter>& parameters,
                                      FusedOrder order) {
  FusedMatch match{order, {}};
  for (const auto& [module, layer] : fused) {
    if (layer.a.entry == nullptr || layer.b.entry == nullptr) return std::nullopt;
    for (const FusedParameter& parameter : parameters)
      if (fits(parameter, order, *layer.a.entry, *layer.b.entry) &&
          std::ranges::count(match.parameters, &parameter) == 0)
        match.parameters.push_back(&parameter);
  }
  if (match.parameters.size() != fused.size()) return std::nullopt;
  return match;
}

// Returns the module of the layer that an adapter's parameter belongs to.
std::string layer_of(const ParamSpec& adapter) {
  const std::string_view name = adapter.name;
  for (const std::string_view end : {kAdapterA, kAdapterB, kAdapterLengths})
    if (name.ends_with(end)) return std::string(name.substr(kPrefix.size(), name.size() - kPrefix.size() - end.size()));
  COLLIMATE_CHECK(false, "{} is of no adapter", name);
  return "";
}

}  // namespace

PeftAdapters::PeftAdapters(const std::string& directory)
    : directory_(directory), config_(directory), file_(open_tensor_file(adapter_files(directory).back())) {
  for (const TensorEntry& entry : file_->entries()) sort_in(entry);
}

LowRank& PeftAdapters::layer_named(const std::string& module) {
  LowRank& layer = layers_[shape::text_part_name(module).value()];
  layer.scale = config_.scale_of(module);
  layer.rank = config_.rank_of(module);
  layer.alpha = config_.alpha_of(module);
  return layer;
}

void PeftAdapters::sort_in(const TensorEntry& entry) {
  const std::string name = entry.name.starts_with(kPrefix) ? entry.name.substr(kPrefix.size()) : "";
  check_dtype(entry, directory_);
  const auto module_before = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
  const auto named = [&](const std::string& whole) {
    TensorEntry renamed = entry;
    renamed.name = shape::text_part_name(whole).value();
    return renamed;
  };
  if (!shape::text_part_name(name)) {
    of_images_.push_back(entry.name);
  } else if (name.ends_with(kAdapterA)) {
    layer_named(module_before(kAdapterA)).a = MatrixInTensor::all_of(entry);
  } else if (name.ends_with(kAdapterB)) {
    layer_named(module_before(kAdapterB)).b = MatrixInTensor::all_of(entry);
  } else if (name.ends_with(kAdapterLengths) && config_.dora()) {
    layer_named(module_before(kAdapterLengths)).lengths = &entry;
  } else if (name.ends_with(kFrozen)) {
    frozen_.push_back(named(module_before(kFrozen) + ".weight"));
  } else if (config_.is_saved(name.substr(0, name.rfind('.')))) {
    saved_.push_back(named(name));
  } else {
    throw InputError(expectation(directory_ + " " + entry.name,
                                 "lora_A or lora_B of a layer, or a module of modules_to_save", "neither",
                                 "merging them with PEFT's merge_and_unload"));
  }
}

void PeftAdapters::split_experts(const shape::ModelShape& shape) {
  const shape::ModuleNames& names = shape::find_family(shape.family, directory_).names;
  for (int64_t layer = 0; layer < shape.layers(); ++layer) {
    const shape::Experts& how = base::at(shape.blocks, layer).mlp.experts;
    const std::string block = fmt::format("{}{}.", names.block, layer);
    if (how.count == 0) continue;
    for (const char* name : {"mlp.gate", "block_sparse_moe.router"}) {
      auto router = layers_.extract(block + name);
      if (router.empty()) continue;
      router.key() = block + names.router;
      layers_.insert(std::move(router));
    }
    for (const FusedModule& module : fused_modules(names, how, shape.hidden)) {
      FusedLayers fused;
      for (const std::string& wrapper : module.wrappers)
        if (auto found = layers_.extract(block + wrapper); !found.empty())
          fused.emplace_back(found.key(), found.mapped());
      if (!fused.empty()) split_fused(block, names.experts, fused, module.parameters);
    }
  }
}

// Where a module has two parameters, one wrapper stands in the other, and no name says which parameter a wrapper is of:
// sizes must tell.
void PeftAdapters::split_fused(const std::string& block, const std::string& experts, FusedLayers& fused,
                               const std::vector<FusedParameter>& parameters) {
  std::vector<FusedMatch> matches;
  for (const FusedOrder order : {FusedOrder::kRowsAreOut, FusedOrder::kRowsAreIn})
    if (const auto match = match_fused(fused, parameters, order)) matches.push_back(*match);
  if (matches.size() != 1)
    throw InputError(expectation(
        directory_ + " " + fused.front().first,
        fmt::format("lora_A and lora_B of {}, whose sizes tell rows from columns", last_parts(parameters)),
        matches.empty() ? fused_sizes(fused) : "equal numbers of both", "merging them with PEFT's merge_and_unload"));
  for (size_t i = 0; i < fused.size(); ++i) {
    const FusedParameter& parameter = *matches[0].parameters[i];
    const int64_t rank = config_.rank_of(block + parameter.name);
    LowRank& layer = fused[i].second;
    layer.scale = config_.scale_of(block + parameter.name);
    if (layer.a.sizes[0] != rank * parameter.experts)
      throw InputError(expectation(directory_ + " " + fused[i].first + std::string(kAdapterA),
                                   fmt::format("{} rows for each of {} experts", rank, parameter.experts),
                                   fmt::format("{} rows", layer.a.sizes[0])));
    for (int64_t expert = 0; expert < parameter.experts; ++expert)
      for (size_t matrix = 0; matrix < parameter.matrices.size(); ++matrix)
        layers_[fmt::format("{}{}{}.{}", block, experts, expert, parameter.matrices[matrix])] =
            of_expert(parameter, matches[0].order, layer, expert, matrix);
  }
}

void PeftAdapters::leave_out_images(const shape::ModelShape& shape) const {
  if (of_images_.empty()) return;
  if (shape.text_part_of.empty())
    throw InputError(expectation(directory_ + " " + of_images_.front(), "a linear layer of the model",
                                 "one of a part that reads images", "the model that the adapters were trained on"));
  base::log_info("{}: {} tensors of adapters are left out: they are of parts of a {} that read images", directory_,
                 of_images_.size(), shape.text_part_of);
}

void PeftAdapters::replace_saved(TensorDirectory& files) const {
  for (const TensorEntry& entry : saved_) files.replace(entry, {entry});
}

void PeftAdapters::check(std::span<const ParamSpec> specs, std::span<const TensorEntry* const> entries,
                         const LoraOptions& lora) const {
  const std::string base = "a parameter of the model, untied if it is a head";
  std::map<std::string_view, const ParamSpec*> by_name;
  for (const ParamSpec& spec : specs) by_name.emplace(spec.name, &spec);
  for (const auto& [module, layer] : layers_) {
    const auto found = by_name.find(module + ".weight");
    check_layer(module, layer, found == by_name.end() ? nullptr : found->second);
  }
  for (const TensorEntry& saved : saved_) {
    const bool used = std::any_of(entries.begin(), entries.end(), [&](const TensorEntry* entry) {
      return entry != nullptr && entry->data.data() == saved.data.data();
    });
    if (!used) throw InputError(expectation(directory_ + " " + saved.name, base, "none of that name"));
  }
  check_frozen(specs, entries);
  if (lora.on()) check_trained(specs);
}

// PEFT writes embeddings and heads that have adapters beside the adapters. Throws InputError unless they have the
// values of the model that was loaded.
void PeftAdapters::check_frozen(std::span<const ParamSpec> specs, std::span<const TensorEntry* const> entries) const {
  for (const TensorEntry& frozen : frozen_) {
    const auto found = std::ranges::find(specs.first(entries.size()), frozen.name, &ParamSpec::name);
    const auto place = static_cast<size_t>(found - specs.begin());
    const TensorEntry* own = place < entries.size() ? entries[place] : nullptr;
    if (own != nullptr && own->sizes == frozen.sizes && have_equal_values(*own, frozen, directory_)) continue;
    throw InputError(expectation(directory_ + " " + frozen.name, "the values of the model that the adapters belong to",
                                 own == nullptr ? "a parameter that it lacks" : "others",
                                 "merging them with PEFT's merge_and_unload"));
  }
}

void PeftAdapters::check_layer(const std::string& module, const LowRank& layer, const ParamSpec* spec) const {
  const std::string where = directory_ + " " + module;
  if (spec == nullptr || spec->sizes.size() != 2 || spec->kind != shape::ParamKind::kLinear)
    throw InputError(expectation(where, "a linear layer of the model", "none of that name",
                                 "the model that the adapters were trained on"));
  const std::vector<int64_t> down = {layer.rank, spec->sizes[1]}, up = {spec->sizes[0], layer.rank};
  for (const auto& [name, matrix, sizes] :
       {std::tuple(kAdapterA, &layer.a, &down), std::tuple(kAdapterB, &layer.b, &up)}) {
    if (matrix->entry != nullptr && matrix->sizes == *sizes) continue;
    throw InputError(expectation(where + std::string(name), fmt::format("[{}] by its rank", fmt::join(*sizes, ", ")),
                                 sizes_text(*matrix)));
  }
  if (!config_.dora() || (layer.lengths != nullptr && layer.lengths->sizes == std::vector{spec->sizes[0]})) return;
  throw InputError(
      expectation(where + std::string(kAdapterLengths), fmt::format("[{}], as use_dora is true", spec->sizes[0]),
                  layer.lengths == nullptr ? "none" : fmt::format("[{}]", fmt::join(layer.lengths->sizes, ", "))));
}

// Throws InputError unless the adapters are exactly those among `specs`, which end with the adapters' parameters.
void PeftAdapters::check_trained(std::span<const ParamSpec> specs) const {
  size_t trained = 0;
  for (const ParamSpec& spec : specs) {
    if (!is_adapter_b(spec)) continue;
    ++trained;
    const std::string module = layer_of(spec);
    if (!layers_.contains(module)) throw InputError(expectation(directory_, spec.name, "no adapter of that layer"));
  }
  if (trained != layers_.size())
    throw InputError(expectation(directory_,
                                 fmt::format("adapters of the blocks' linear layers, {}, to train on", trained),
                                 fmt::format("{}", layers_.size()), "training all weights of the merged model"));
}

PeftAdapters::Sum PeftAdapters::sum_of(const ParamSpec& spec) const {
  Sum sum;
  const auto found = layers_.find(spec.name.substr(0, spec.name.rfind('.')));
  if (found == layers_.end() || !spec.name.ends_with(".weight")) return sum;
  sum.adapters_ = this;
  sum.spec_ = &spec;
  sum.layer_ = &found->second;
  const MatrixInTensor& a = sum.layer_->a;
  const auto rank = static_cast<size_t>(a.sizes[0]), width = static_cast<size_t>(a.sizes[1]);
  sum.down_.resize(rank * width);
  for (size_t k = 0; k < rank; ++k) a.read_row(k, directory_, std::span(sum.down_).subspan(k * width, width));
  if (const TensorEntry* lengths = sum.layer_->lengths; lengths != nullptr) {
    sum.lengths_.resize(static_cast<size_t>(lengths->count()));
    read_floats(*lengths, directory_, sum.lengths_);
    check_finite(*lengths, directory_, sum.lengths_);
  }
  return sum;
}

void PeftAdapters::Sum::add(int64_t first, std::span<float> out) const {
  if (layer_ == nullptr) return;
  const auto width = static_cast<size_t>(layer_->a.sizes[1]), rank = static_cast<size_t>(layer_->a.sizes[0]);
  std::vector<float> up(rank);
  for (size_t row = 0; row * width < out.size(); ++row) {
    const auto in_file = static_cast<size_t>(spec_->file_row(first + static_cast<int64_t>(row)));
    layer_->b.read_row(in_file, adapters_->directory_, up);
    const std::span<float> sum = out.subspan(row * width, width);
    add_low_rank(layer_->scale, up, down_, sum);
    if (!lengths_.empty()) set_length(lengths_[in_file], sum);
  }
}

void PeftAdapters::fill(Weights& weights) const {
  for (size_t i = weights.own_params(); i < weights.params().size(); ++i) {
    const ParamSpec& spec = weights.whole_params()[i];
    const LowRank& layer = layers_.at(layer_of(spec));
    weights.fill(static_cast<int>(i), [&](std::span<float> whole) {
      const bool are_lengths = spec.name.ends_with(kAdapterLengths);
      const TensorEntry& entry =
          are_lengths ? *layer.lengths : *(spec.name.ends_with(kAdapterA) ? layer.a : layer.b).entry;
      read_param(spec, entry, directory_, whole);
      check_finite(entry, directory_, whole);
    });
  }
  weights.commit();
}

LoraOptions PeftAdapters::options() const {
  if (!config_.parameters().empty())
    throw InputError(expectation(directory_ + "/adapter_config.json target_parameters",
                                 "none in adapters that are trained on, which are those of linear layers",
                                 fmt::format("{}", fmt::join(config_.parameters(), ", ")),
                                 "training all weights, which begins from the merged model"));
  std::vector<std::string> modules, saved;
  for (const auto& [module, layer] : layers_) modules.push_back(module);
  for (const TensorEntry& entry : saved_) saved.push_back(entry.name);
  LoraOptions lora = config_.options(modules, saved);
  for (const auto& [module, layer] : layers_)
    if (layer.rank != lora.rank || layer.alpha != lora.alpha) lora.own[module] = {layer.rank, layer.alpha};
  return lora;
}

}  // namespace collimate::model
