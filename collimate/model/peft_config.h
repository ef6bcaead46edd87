#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collimate/model/lora.h"

namespace collimate::model {

// Holds what PEFT's adapter_config.json says of LoRA adapters. Layers are named by their modules, such as
// "model.layers.0.self_attn.q_proj".
class PeftConfig {
 public:
  // Throws InputError naming the key for adapters of another kind, and for settings that change the sum W + scale B A.
  explicit PeftConfig(const std::string& directory);

  int64_t rank_of(const std::string& module) const;
  // Returns alpha / rank, or alpha / √rank (rsLoRA). Alpha and rank are those of the first pattern that matches the
  // end of the module's name, or the config's own.
  float scale_of(const std::string& module) const;
  double alpha_of(const std::string& module) const;
  bool dora() const { return dora_; }  // use_dora
  // Returns whether the name of the module, or of one that it lies in, ends with a name of modules_to_save, so that its
  // weights are saved whole: "norm" names "model.layers.0.input_layernorm" too, as in PEFT.
  bool is_saved(const std::string& module) const;
  // Returns the parameters that target_parameters names; most often they hold all experts of a block.
  const std::vector<std::string>& parameters() const { return parameters_; }
  // Returns the options of adapters that are trained on. Targets are the layers that the config lists, else `modules`;
  // modules to save are those of the `saved` tensors, without a score head.
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
  bool rslora_ = false, dora_ = false;
  std::vector<Pattern> ranks_, alphas_;
  std::vector<std::string> saved_;
  std::vector<std::string> parameters_;
  std::vector<std::string> targets_;  // those that are listed; empty where a pattern or a choice of blocks names them
};

}  // namespace collimate::model
