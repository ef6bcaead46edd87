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

// Holds the adapters of a directory with adapter_config.json and adapter_model.safetensors or adapter_model.bin,
// mapped. If they are of a model that reads images too, layers of its language model get the names that they have in
// the language model alone.
class PeftAdapters {
 public:
  // Throws InputError as PeftConfig, and when a tensor is neither of an adapter nor of a saved module.
  explicit PeftAdapters(const std::string& directory);

  // Splits adapters of fused experts (target_parameters of PEFT) into adapters of each expert's matrices. Throws
  // InputError when sizes are those of no parameter, or do not tell rows from columns. Call it before check().
  void split_experts(const shape::ModelShape& shape);
  // Leaves out adapters of parts that read images. Throws InputError when there are any and the shape is not that of
  // the language model of such a model.
  void leave_out_images(const shape::ModelShape& shape) const;
  // Puts modules that were saved whole in the place of the model's own.
  void replace_saved(TensorDirectory& files) const;
  // Throws InputError when an adapter fits no linear layer of the model, when its sizes do not fit its rank, or when a
  // saved module is not among `entries`, which are those of the specs. If `lora` is on, the adapters are to be trained
  // on; then it also throws when they are not exactly those of the specs.
  void check(std::span<const shape::ParamSpec> specs, std::span<const TensorEntry* const> entries,
             const LoraOptions& lora) const;

  // Adds an adapter's product to one parameter, piece by piece; the adapter's A is widened once. A sum refers to the
  // adapters and to the parameter's spec. Several threads may add at once.
  class Sum {
   public:
    Sum() = default;  // adds nothing
    // Adds scale B A to the parameter's rows from `first` on, out [rows, in], and gives them their lengths with DoRA.
    void add(int64_t first, std::span<float> out) const;

   private:
    friend class PeftAdapters;
    const PeftAdapters* adapters_ = nullptr;
    const shape::ParamSpec* spec_ = nullptr;
    const LowRank* layer_ = nullptr;  // null: nothing is added
    std::vector<float> down_;         // [rank, in]
    std::vector<float> lengths_;      // [out] in the file's order; empty without DoRA
  };
  // Returns the sum for a parameter; for one without an adapter it adds nothing.
  Sum sum_of(const shape::ParamSpec& spec) const;
  // Fills in the values of adapters that are trained on. Commits.
  void fill(Weights& weights) const;

  // Returns PeftConfig::options. Throws InputError for adapters of parameters (fused experts), which can be merged but
  // not trained on.
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
  std::vector<TensorEntry> frozen_;        // the model's own values of layers with adapters, under its names
  std::vector<std::string> of_images_;     // tensors of parts that read images
};

}  // namespace collimate::model
