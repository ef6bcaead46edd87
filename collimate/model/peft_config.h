#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collimate/model/lora.h"

namespace collimate::model {

// Holds what PEFT's adapter_config.json says of LoRA adapters. Layers are named by their modules,
// "model.layers.0.self_attn.q_proj".
class PeftConfig {
 public:
  // InputError that names the key for adapters of another kind, and for what changes the sum W + scale B A.
  explicit PeftConfig(const std::string& directory);

  int64_t rank_of(const std::string& module) const;
  // alpha / rank, or alpha / √rank (rsLoRA), by the first of the patterns that end the module's name.
  float scale_of(const std::string& module) const;
  // Whether modules_to_save names a module, or one that it lies in: its weights are saved whole.
  bool is_saved(const std::string& module) const;
  // Parameters that target_parameters names: experts of a block in one, most often.
  const std::vector<std::string>& parameters() const { return parameters_; }
  // The options of adapters that are trained on, of layers that `modules` lists, unless the config does, beside the
  // `saved` tensors of whole modules. InputError where their layers have other ranks or scales than each other.
  LoraOptions options(const std::vector<std::string>& modules, const std::vector<std::string>& saved) const;

 private:
  struct Pattern {
    std::string key;  // a regular expression for the whole of a module's name, or for its end behind a dot
    double value = 0;
  };

  void refuse_others(const nlohmann::json& config) const;
  std::vector<Pattern> read_patterns(const nlohmann::ordered_json& config, const char* key) const;
  static double value_of(const std::vector<Pattern>& patterns, const std::string& module, double otherwise);

  std::string where_;
  int64_t rank_ = 0;
  double alpha_ = 0;
  bool rslora_ = false;
  std::vector<Pattern> ranks_, alphas_;
  std::vector<std::string> saved_;
  std::vector<std::string> parameters_;
  std::vector<std::string> targets_;  // those that are listed; empty where a pattern or a choice of blocks names them
};

}  // namespace collimate::model
