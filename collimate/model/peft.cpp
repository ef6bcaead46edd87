#include "collimate/model/peft.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/model/file_order.h"
#include "collimate/model/safetensors.h"
#include "collimate/shape/text_part.h"

namespace collimate::model {
namespace {

// Returns a number as PEFT writes it: whole numbers without a point.
nlohmann::ordered_json plain_number(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '.' ? "\\." : std::string(1, c);
  return text;
}

// Returns the value of target_modules. In a model that reads images too, layers of other parts may have names with the
// same last parts; there a regular expression for whole names says which layers are meant.
nlohmann::ordered_json peft_targets(const shape::ModelShape& shape, const LoraOptions& lora) {
  const std::vector<std::string> targets = lora_targets(shape, lora);
  if (shape.text_part_of.empty()) return targets;
  const std::string alone = "model.";
  std::vector<std::string> ends;
  for (const std::string& target : targets)
    ends.push_back(escaped(target.starts_with(alone) ? target.substr(alone.size()) : target));
  return fmt::format(R"({}(?:.*\.)?(?:{}))", escaped(shape::name_in_whole(shape.text_part_of, alone)),
                     fmt::join(ends, "|"));
}

// Returns a parameter's name in a model that PEFT has wrapped.
std::string peft_name(const shape::ModelShape& shape, const shape::ParamSpec& spec) {
  const std::string prefix = "base_model.model.";
  const std::string name = is_adapter(spec) ? spec.name.substr(prefix.size()) : spec.name;
  return fmt::format("{}{}", prefix, shape::name_in_whole(shape.text_part_of, name));
}

nlohmann::ordered_json peft_config(const Weights& weights, const std::string& base_model) {
  const shape::ModelShape& shape = weights.shape();
  const LoraOptions& lora = weights.options().lora;
  const bool scores = weights.index_of("score.weight") >= 0;
  std::vector<std::string> saved = lora.modules_to_save;
  if (scores) saved.emplace_back("score");
  const bool conv1d = std::any_of(weights.params().begin(), weights.params().end(), [](const shape::ParamSpec& spec) {
    return spec.transposed_in_file && spec.expert < 0;
  });
  nlohmann::ordered_json config = {
      {"peft_type", "LORA"},
      {"task_type", scores ? "SEQ_CLS" : "CAUSAL_LM"},
      {"base_model_name_or_path", base_model},
      {"r", lora.rank},
      {"lora_alpha", plain_number(lora.alpha)},
      {"use_rslora", lora.rslora},
      {"use_dora", lora.dora},
      {"lora_dropout", plain_number(lora.dropout)},
      {"target_modules", peft_targets(shape, lora)},
      {"modules_to_save", saved.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(saved)},
      {"bias", "none"},
      {"fan_in_fan_out", conv1d},
      {"init_lora_weights", true},
      {"inference_mode", true}};
  for (const auto& [module, of] : lora.own) {
    const std::string name = escaped(shape::name_in_whole(shape.text_part_of, module));
    if (of.rank != lora.rank) config["rank_pattern"][name] = of.rank;
    if (of.alpha != lora.alpha) config["alpha_pattern"][name] = plain_number(of.alpha);
  }
  // Without this key, PEFT 0.18 and later leave a head that is tied to the embedding as the model has it.
  if (!lora.modules_to_save.empty() && shape.tied_embeddings) config["ensure_weight_tying"] = true;
  return config;
}

}  // namespace

void save_peft(const Weights& weights, const std::string& directory, const std::string& base_model) {
  COLLIMATE_CHECK(weights.options().lora.on(), "no adapters to write");
  const auto whole_values = [&](size_t i) {
    return weights.gather(static_cast<int>(i), [&]() -> std::vector<float> {
      const tensor::HostRead mine = weights.values(static_cast<int>(i));
      return {mine.begin(), mine.end()};
    });
  };
  std::vector<size_t> written;
  for (size_t i = 0; i < weights.params().size(); ++i)
    if (is_changed_by_training(weights.options().lora, weights.params()[i])) written.push_back(i);
  if (!weights.options().ranks.writes()) {
    for (const size_t i : written) whole_values(i);
    return;
  }
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) throw base::RunError(base::expectation(directory, "a directory to write to", failed.message()));
  std::vector<TensorToWrite> tensors;
  for (const size_t i : written) {
    const shape::ParamSpec& spec = weights.whole_params()[i];
    tensors.push_back({peft_name(weights.shape(), spec), spec.sizes,
                       [&, i](std::span<float> out) { to_file_order(spec, whole_values(i), out); }});
  }
  write_safetensors(directory + "/adapter_model.safetensors", tensors);
  host::write_file_atomically(directory + "/adapter_config.json", peft_config(weights, base_model).dump(2) + "\n");
}

}  // namespace collimate::model
