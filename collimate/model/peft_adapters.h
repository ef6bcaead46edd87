#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/model/low_rank.h"
#include "collimate/model/peft_config.h"
#include "collimate/model/safetensors.h"
#include "collimate/shape/family.h"
#include "collimate/shape/param_spec.h"

namespace collimate::model {

using FusedLayers = std::vector<std::pair<std::string, LowRank>>;  // of parameters of all experts, by module

// The adapters of a directory with adapter_config.json and adapter_model.safetensors, or adapter_model.bin, mapped.
// Layers of a language model in a model that reads images too have the names that they have where it stands alone.
class PeftAdapters {
 public:
  // InputError as PeftConfig, and where a tensor is neither of an adapter nor of a saved module.
  explicit PeftAdapters(const std::string& directory);

  // Adapters of fused experts (target_parameters of PEFT) become those of each expert's matrices. InputError where
  // their sizes are those of no parameter, or do not tell which way round they are. Before check().
  void split_experts(const shape::ModelShape& shape);
  // InputError where there are adapters of parts that read images, unless the shape is of such a model's language
  // model.
  void leave_out_images(const shape::ModelShape& shape) const;
  // Modules that were saved whole take the place of the model's own.
  void replace_saved(TensorDirectory& files) const;
  // InputError where an adapter fits no linear layer of the model, its sizes are others than its rank says, or a saved
  // module is not among `entries`, those of the specs; for adapters that are trained on, `lora`, also where they are
  // others than those.
  void check(std::span<const shape::ParamSpec> specs, std::span<const TensorEntry* const> entries,
             const LoraOptions& lora) const;

  // The sum is added to one parameter, piece by piece: its A is widened once. It refers to the adapters and to the
  // parameter; several threads may add at once.
  class Sum {
   public:
    Sum() = default;  // adds nothing
    // Rows of the parameter from `first` on, out [rows, in], += scale B A.
    void add(int64_t first, std::span<float> out) const;

   private:
    friend class PeftAdapters;
    const PeftAdapters* adapters_ = nullptr;
    const shape::ParamSpec* spec_ = nullptr;
    const LowRank* layer_ = nullptr;  // null: nothing is added
    std::vector<float> down_;         // [rank, in]
  };
  // The sum of a parameter without an adapter adds nothing.
  Sum sum_of(const shape::ParamSpec& spec) const;
  // The values of adapters that are trained on. Commits.
  void fill(Weights& weights) const;

  // As PeftConfig::options. InputError for adapters of parameters (fused experts), which are merged, not trained on.
  LoraOptions options() const;

 private:
  void sort_in(const TensorEntry& entry);
  LowRank& layer_named(const std::string& module);
  void split_fused(const std::string& block, const std::string& experts, FusedLayers& fused,
                   const std::vector<FusedParameter>& parameters);
  void check_layer(const std::string& module, const LowRank& layer, const shape::ParamSpec* spec) const;
  void check_frozen(std::span<const shape::ParamSpec> specs, std::span<const TensorEntry* const> entries) const;
  void check_trained(std::span<const shape::ParamSpec> specs) const;

  std::string directory_;
  PeftConfig config_;
  std::unique_ptr<TensorFile> file_;
  std::map<std::string, LowRank> layers_;  // by module
  std::vector<TensorEntry> saved_;         // under the model's names
  std::vector<TensorEntry> frozen_;        // the model's own values of layers with adapters, likewise
  std::vector<std::string> of_images_;     // tensors of parts that read images
};

}  // namespace collimate::model
