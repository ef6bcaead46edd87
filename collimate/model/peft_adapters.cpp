#include "collimate/model/peft_adapters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/file_order.h"
#include "collimate/model/weights.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using shape::ParamSpec;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight", kFrozen = ".base_layer.weight";

// Modules of the wrappers of a block's fused experts: the outer one, and the one in it.
constexpr std::string_view kFused = ".mlp.experts", kFusedInside = ".mlp.experts.base_layer";

std::string sizes_text(const MatrixInTensor& matrix) {
  return matrix.entry == nullptr ? "none" : fmt::format("[{}]", fmt::join(matrix.sizes, ", "));
}

using FusedLayers = std::vector<std::pair<std::string, LowRank>>;

std::string fused_sizes(const FusedLayers& fused) {
  std::vector<std::string> texts;
  for (const auto& [module, layer] : fused) texts.push_back(sizes_text(layer.a) + " and " + sizes_text(layer.b));
  return fmt::format("{}", fmt::join(texts, "; "));
}

// Which parameter each of the adapters is of.
struct FusedMatch {
  FusedOrder order;
  std::vector<const FusedParameter*> parameters;
};

// Nothing where one of them fits none, or two the same one. Of two parameters no more than one has an adapter's sizes.
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

// The layer whose adapter it is.
std::string layer_of(const ParamSpec& adapter) {
  return adapter.name.substr(kPrefix.size(), adapter.name.size() - kPrefix.size() - kA.size());
}

}  // namespace

PeftAdapters::PeftAdapters(const std::string& directory)
    : directory_(directory), config_(directory), file_(open_tensor_file(adapter_files(directory).back())) {
  for (const TensorEntry& entry : file_->entries()) sort_in(entry);
  for (auto& [module, layer] : layers_) {
    layer.scale = config_.scale_of(module);
    layer.rank = config_.rank_of(module);
  }
}

void PeftAdapters::sort_in(const TensorEntry& entry) {
  const std::string name = entry.name.starts_with(kPrefix) ? entry.name.substr(kPrefix.size()) : "";
  check_dtype(entry, directory_);
  const auto module_before = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
  if (name.ends_with(kA)) {
    layers_[module_before(kA)].a = MatrixInTensor::all_of(entry);
  } else if (name.ends_with(kB)) {
    layers_[module_before(kB)].b = MatrixInTensor::all_of(entry);
  } else if (name.ends_with(kFrozen)) {
    frozen_.push_back(entry);
    frozen_.back().name = module_before(kFrozen) + ".weight";
  } else if (config_.is_saved(name.substr(0, name.rfind('.')))) {
    saved_.push_back(entry);
    saved_.back().name = name;
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
    if (auto router = layers_.extract(block + "mlp.gate"); !router.empty()) {
      router.key() = block + names.router;
      layers_.insert(std::move(router));
    }
    const auto up = static_cast<int64_t>(names.expert_up.size());
    split_experts_of(block, names,
                     {{"gate_up_proj", how.count, up * how.intermediate, shape.hidden, names.expert_up},
                      {"down_proj", how.count, shape.hidden, how.intermediate, {names.expert_down}}});
  }
}

// Wrappers of two parameters stand one in the other, and no name says whose which is.
void PeftAdapters::split_experts_of(const std::string& block, const shape::ModuleNames& names,
                                    const std::vector<FusedParameter>& parameters) {
  std::vector<std::pair<std::string, LowRank>> fused;
  for (const std::string_view wrapper : {kFusedInside, kFused})
    if (auto found = layers_.extract(block + std::string(wrapper.substr(1))); !found.empty())
      fused.emplace_back(found.key(), found.mapped());
  if (fused.empty()) return;
  if (!names.stacked_up.empty())
    throw InputError(expectation(directory_ + " " + fused.front().first, "adapters of layers",
                                 "those of tensors that hold all experts of a block",
                                 "merging them with PEFT's merge_and_unload"));
  std::vector<FusedMatch> matches;
  for (const FusedOrder order : {FusedOrder::kRowsAreOut, FusedOrder::kRowsAreIn})
    if (const auto match = match_fused(fused, parameters, order)) matches.push_back(*match);
  if (matches.size() != 1)
    throw InputError(expectation(directory_ + " " + fused.front().first,
                                 "lora_A and lora_B of gate_up_proj or down_proj, whose sizes tell rows from columns",
                                 matches.empty() ? fused_sizes(fused) : "equal numbers of both",
                                 "merging them with PEFT's merge_and_unload"));
  for (size_t i = 0; i < fused.size(); ++i) {
    const FusedParameter& parameter = *matches[0].parameters[i];
    const std::string whole = block + std::string(kFused.substr(1)) + "." + parameter.name;
    const int64_t rank = config_.rank_of(whole);
    LowRank& layer = fused[i].second;
    layer.scale = config_.scale_of(whole);
    if (layer.a.sizes[0] != rank * parameter.experts)
      throw InputError(expectation(directory_ + " " + fused[i].first + std::string(kA),
                                   fmt::format("{} rows for each of {} experts", rank, parameter.experts),
                                   fmt::format("{} rows", layer.a.sizes[0])));
    for (int64_t expert = 0; expert < parameter.experts; ++expert)
      for (size_t matrix = 0; matrix < parameter.matrices.size(); ++matrix)
        layers_[fmt::format("{}{}{}.{}", block, names.experts, expert, parameter.matrices[matrix])] =
            of_expert(parameter, matches[0].order, layer, expert, matrix);
  }
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

// PEFT writes embeddings and heads that have adapters beside these: they are those of the model that is there.
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
  for (const auto& [name, matrix, sizes] : {std::tuple(kA, &layer.a, &down), std::tuple(kB, &layer.b, &up)}) {
    if (matrix->entry != nullptr && matrix->sizes == *sizes) continue;
    throw InputError(expectation(where + std::string(name), fmt::format("[{}] by its rank", fmt::join(*sizes, ", ")),
                                 sizes_text(*matrix)));
  }
}

// `specs` are those of the model with the adapters behind it.
void PeftAdapters::check_trained(std::span<const ParamSpec> specs) const {
  size_t trained = 0;
  for (const ParamSpec& spec : specs) {
    if (!is_adapter(spec)) continue;
    ++trained;
    const std::string module = layer_of(spec);
    if (!layers_.contains(module)) throw InputError(expectation(directory_, spec.name, "no adapter of that layer"));
  }
  if (trained != 2 * layers_.size())
    throw InputError(expectation(directory_,
                                 fmt::format("adapters of the blocks' linear layers, {}, to train on", trained / 2),
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
  return sum;
}

void PeftAdapters::Sum::add(int64_t first, std::span<float> out) const {
  if (layer_ == nullptr) return;
  const auto width = static_cast<size_t>(layer_->a.sizes[1]), rank = static_cast<size_t>(layer_->a.sizes[0]);
  std::vector<float> up(rank);
  for (size_t row = 0; row * width < out.size(); ++row) {
    const auto in_file = static_cast<size_t>(spec_->file_row(first + static_cast<int64_t>(row)));
    layer_->b.read_row(in_file, adapters_->directory_, up);
    add_low_rank(layer_->scale, up, down_, out.subspan(row * width, width));
  }
}

void PeftAdapters::fill(Weights& weights) const {
  for (size_t i = weights.own_params(); i < weights.params().size(); ++i) {
    const ParamSpec& spec = weights.whole_params()[i];
    const LowRank& layer = layers_.at(layer_of(spec));
    weights.fill(static_cast<int>(i), [&](std::span<float> whole) {
      const TensorEntry& entry = *(spec.name.ends_with(kA) ? layer.a : layer.b).entry;
      read_param(spec, entry, directory_, whole);
      check_finite(entry, directory_, whole);
    });
  }
  weights.commit();
}

LoraOptions PeftAdapters::options() const {
  std::vector<std::string> modules, saved;
  for (const auto& [module, layer] : layers_) {
    if (module.ends_with(kFused) || module.ends_with(kFusedInside))
      throw InputError(expectation(directory_ + " " + module, "adapters of linear layers, to train on",
                                   "those of fused experts (target_parameters)",
                                   "training all weights, which begins from the merged model"));
    modules.push_back(module);
  }
  for (const TensorEntry& entry : saved_) saved.push_back(entry.name);
  return config_.options(modules, saved);
}

}  // namespace collimate::model
