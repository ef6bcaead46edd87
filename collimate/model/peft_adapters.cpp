#include "collimate/model/peft_adapters.h"

#include <fmt/ranges.h>

#include <algorithm>

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
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";

const ParamSpec* find_spec(std::span<const ParamSpec> specs, const std::string& name) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const ParamSpec& s) { return s.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

// The layer whose adapter it is.
std::string layer_of(const ParamSpec& adapter) {
  return adapter.name.substr(kPrefix.size(), adapter.name.size() - kPrefix.size() - kA.size());
}

}  // namespace

PeftAdapters::PeftAdapters(const std::string& directory)
    : directory_(directory), config_(directory), file_(open_tensor_file(adapter_files(directory).back())) {
  for (const TensorEntry& entry : file_->entries()) sort_in(entry);
  for (auto& [module, layer] : layers_) layer.scale = config_.scale_of(module);
}

void PeftAdapters::sort_in(const TensorEntry& entry) {
  const std::string name = entry.name.starts_with(kPrefix) ? entry.name.substr(kPrefix.size()) : "";
  check_dtype(entry, directory_);
  const auto module_before = [&](std::string_view end) { return name.substr(0, name.size() - end.size()); };
  if (name.ends_with(kA)) {
    layers_[module_before(kA)].a = &entry;
  } else if (name.ends_with(kB)) {
    layers_[module_before(kB)].b = &entry;
  } else if (config_.is_saved(name.substr(0, name.rfind('.')))) {
    saved_.push_back(entry);
    saved_.back().name = name;
  } else {
    throw InputError(expectation(directory_ + " " + entry.name,
                                 "lora_A or lora_B of a layer, or a module of modules_to_save", "neither",
                                 "merging them with PEFT's merge_and_unload"));
  }
}

void PeftAdapters::replace_saved(TensorDirectory& files) const {
  for (const TensorEntry& entry : saved_) files.replace(entry, {entry});
}

void PeftAdapters::check(std::span<const ParamSpec> specs, std::span<const TensorEntry* const> entries,
                         const LoraOptions& lora) const {
  const std::string base = "a parameter of the model, untied if it is a head";
  for (const auto& [module, layer] : layers_) check_layer(module, layer, specs);
  for (const TensorEntry& saved : saved_) {
    const bool used = std::any_of(entries.begin(), entries.end(), [&](const TensorEntry* entry) {
      return entry != nullptr && entry->data.data() == saved.data.data();
    });
    if (!used) throw InputError(expectation(directory_ + " " + saved.name, base, "none of that name"));
  }
  if (lora.on()) check_trained(specs);
}

void PeftAdapters::check_layer(const std::string& module, const Layer& layer, std::span<const ParamSpec> specs) const {
  const std::string where = directory_ + " " + module;
  const ParamSpec* spec = find_spec(specs, module + ".weight");
  if (spec == nullptr || spec->sizes.size() != 2 || spec->kind != shape::ParamKind::kLinear)
    throw InputError(expectation(where, "a linear layer of the model", "none of that name",
                                 "the model that the adapters were trained on"));
  const int64_t rank = config_.rank_of(module);
  const std::vector<int64_t> down = {rank, spec->sizes[1]}, up = {spec->sizes[0], rank};
  for (const auto& [name, entry, sizes] : {std::tuple(kA, layer.a, &down), std::tuple(kB, layer.b, &up)}) {
    if (entry != nullptr && entry->sizes == *sizes) continue;
    throw InputError(expectation(where + std::string(name), fmt::format("[{}] by its rank", fmt::join(*sizes, ", ")),
                                 entry == nullptr ? "none" : fmt::format("[{}]", fmt::join(entry->sizes, ", "))));
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
  sum.down_.resize(static_cast<size_t>(sum.layer_->a->sizes[0] * sum.layer_->a->sizes[1]));
  read_floats(*sum.layer_->a, directory_, sum.down_);
  return sum;
}

void PeftAdapters::Sum::add(int64_t first, std::span<float> out) const {
  if (layer_ == nullptr) return;
  const auto width = static_cast<size_t>(layer_->a->sizes[1]), rank = static_cast<size_t>(layer_->a->sizes[0]);
  std::vector<float> up(rank);
  for (size_t row = 0; row * width < out.size(); ++row) {
    const auto in_file = static_cast<size_t>(spec_->file_row(first + static_cast<int64_t>(row)));
    read_floats(part_of(*layer_->b, in_file * rank, rank), adapters_->directory_, up);
    add_low_rank(layer_->scale, up, down_, out.subspan(row * width, width));
  }
}

void PeftAdapters::fill(Weights& weights) const {
  for (size_t i = weights.own_params(); i < weights.params().size(); ++i) {
    const ParamSpec& spec = weights.whole_params()[i];
    const Layer& layer = layers_.at(layer_of(spec));
    weights.fill(static_cast<int>(i), [&](std::span<float> whole) {
      read_param(spec, spec.name.ends_with(kA) ? *layer.a : *layer.b, directory_, whole);
    });
  }
  weights.commit();
}

LoraOptions PeftAdapters::options() const {
  std::vector<std::string> modules, saved;
  for (const auto& [module, layer] : layers_) modules.push_back(module);
  for (const TensorEntry& entry : saved_) saved.push_back(entry.name);
  return config_.options(modules, saved);
}

}  // namespace collimate::model
