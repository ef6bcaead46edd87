#include "collimate/shape/text_part.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "collimate/base/error.h"

namespace collimate::shape {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

// Returns, by model_type, the family of the language model where the config has no text_config to name it; "" where it
// always has one.
const std::map<std::string, std::string>& readers_of_images() {
  static const std::map<std::string, std::string> kTypes = {
      {"gemma3", ""},        {"mistral3", ""},        {"llava", ""},         {"llava_next", ""}, {"internvl", ""},
      {"qwen2_vl", "qwen2"}, {"qwen2_5_vl", "qwen2"}, {"qwen3_vl", "qwen3"}, {"idefics3", ""},   {"smolvlm", ""}};
  return kTypes;
}

// Returns values for keys that published text_configs leave out: the defaults of transformers' config classes.
const std::map<std::string, json>& defaults() {
  static const std::map<std::string, json> kDefaults = {{"gemma3_text",
                                                         {{"vocab_size", 262208},
                                                          {"hidden_size", 2304},
                                                          {"intermediate_size", 9216},
                                                          {"num_hidden_layers", 26},
                                                          {"num_attention_heads", 8},
                                                          {"num_key_value_heads", 4},
                                                          {"rms_norm_eps", 1e-6}}},
                                                        {"llama",
                                                         {{"vocab_size", 32000},
                                                          {"hidden_size", 4096},
                                                          {"intermediate_size", 11008},
                                                          {"num_hidden_layers", 32},
                                                          {"num_attention_heads", 32},
                                                          {"rms_norm_eps", 1e-6}}},
                                                        {"mistral",
                                                         {{"vocab_size", 32000},
                                                          {"hidden_size", 4096},
                                                          {"intermediate_size", 14336},
                                                          {"num_hidden_layers", 32},
                                                          {"num_attention_heads", 32},
                                                          {"num_key_value_heads", 8},
                                                          {"max_position_embeddings", 131072},
                                                          {"rms_norm_eps", 1e-6}}},
                                                        {"qwen2", json::object()},
                                                        {"qwen3", json::object()}};
  return kDefaults;
}

// Returns the family of a text_config's model_type, as "qwen2" for "qwen2_vl_text".
std::string family_of(const std::string& model_type) {
  static const std::map<std::string, std::string> kFamilies = {
      {"qwen2_vl_text", "qwen2"}, {"qwen2_5_vl_text", "qwen2"}, {"qwen3_vl_text", "qwen3"}};
  const auto found = kFamilies.find(model_type);
  return found == kFamilies.end() ? model_type : found->second;
}

// Turns a rope for images (Wang et al. 2024: M-RoPE) into a plain one: a text's positions are equal in all its
// sections.
void read_plain_rope(json& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.contains(key) || !config.at(key).is_object() || !config.at(key).contains("mrope_section")) continue;
    json& rope = config.at(key);
    if (!rope.contains("rope_type")) rope["rope_type"] = rope.value("type", json("default"));
    if (rope.at("rope_type") == "mrope") rope["rope_type"] = "default";
    for (const char* of_images : {"mrope_section", "mrope_interleaved", "type"}) rope.erase(of_images);
  }
}

}  // namespace

std::optional<json> text_part_config(const json& config, const std::string& where) {
  const json type = config.value("model_type", json());
  const auto reader = type.is_string() ? readers_of_images().find(type.get<std::string>()) : readers_of_images().end();
  if (reader == readers_of_images().end()) return std::nullopt;
  const bool apart = config.contains("text_config");
  json text = apart ? config.at("text_config") : config;
  if (!text.is_object() || (!apart && reader->second.empty()))
    throw InputError(expectation(where + " text_config", "an object", apart ? text.type_name() : "nothing"));
  const json own = text.value("model_type", json());
  const std::string family = apart && own.is_string() ? family_of(own.get<std::string>()) : reader->second;
  const auto filled = defaults().find(family);
  if (filled == defaults().end()) {
    std::vector<std::string> families;
    for (const auto& [name, values] : defaults()) families.push_back(name);
    throw InputError(expectation(where + " text_config model_type", fmt::format("one of {}", fmt::join(families, ", ")),
                                 own.dump()));
  }
  for (const char* key : {"architectures", "vision_config"}) text.erase(key);
  text["model_type"] = family;
  // Where both configs have such a key, that of the whole model counts.
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings"})
    if (config.contains(key) && !config.at(key).is_null()) text[key] = config.at(key);
  for (const auto& [key, value] : filled->second.items())
    if (!text.contains(key) || text.at(key).is_null()) text[key] = value;
  read_plain_rope(text);
  return text;
}

std::optional<std::string> text_part_name(const std::string& name) {
  using Renaming = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Renaming, 4> kRenamed = {Renaming{"language_model.model.", "model."},
                                                {"language_model.lm_head.", "lm_head."},
                                                {"model.language_model.", "model."},
                                                {"model.text_model.", "model."}};
  for (const auto& [whole, alone] : kRenamed)
    if (name.starts_with(whole)) return std::string(alone) + name.substr(whole.size());
  std::string_view part = name;
  if (part.starts_with("model.")) part.remove_prefix(std::string_view("model.").size());
  for (const std::string_view other :
       {"vision_tower.", "vision_model.", "visual.", "multi_modal_projector.", "connector.", "image_newline"})
    if (part.starts_with(other)) return std::nullopt;
  return name;
}

std::string name_in_whole(const std::string& text_part_of, const std::string& name) {
  constexpr std::string_view kModel = "model.";
  if (text_part_of.empty() || !name.starts_with(kModel)) return name;
  const bool text_model = text_part_of == "idefics3" || text_part_of == "smolvlm";
  return (text_model ? "model.text_model." : "model.language_model.") + name.substr(kModel.size());
}

}  // namespace collimate::shape
