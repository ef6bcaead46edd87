#include "collimate/shape/config_defaults.h"

#include <algorithm>
#include <string_view>

namespace collimate::shape {
namespace {

using nlohmann::json;

// A row of defaults. 0 stands for the default of most families, or for one that the family's own file sets.
struct ConfigDefaults {
  std::string_view family;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  double epsilon = 0;
  int64_t positions = 0;
};

constexpr ConfigDefaults kConfigDefaults[] = {
    {"cwm", 8, 128},
    {"deepseek_v3", 0, 0, 0, 4096},
    {"dots1", 32},
    {"ernie4_5", 2},
    {"exaone4", 32, 0, 1e-5},
    {"gemma", 16},
    {"gemma2", 4},
    {"gemma3_text", 4},
    {"glm", 2},
    {"glm4", 2},
    {"glm4_moe", 8, 0, 1e-5, 131072},
    {"gpt_oss", 8},
    {"helium", 20},
    {"jais2", 32, 0, 0, 8192},
    {"ministral", 8},
    {"mistral", 8, 0, 0, 131072},
    {"mixtral", 8, 0, 1e-5, 131072},
    {"olmoe", 0, 0, 0, 4096},
    {"phi3", 0, 0, 1e-5, 4096},
    {"qwen2", 32, 0, 0, 32768},
    {"qwen2_moe", 16, 0, 0, 32768},
    {"qwen3", 32, 128, 0, 32768},
    {"qwen3_moe", 4, 0, 0, 32768},
    {"seed_oss", 8},
    {"smollm3", 4},
    {"stablelm", 32, 0, 0, 4096},
    {"starcoder2", 2, 0, 0, 4096},
};

template <class Number>
void add(json& config, const char* key, Number value) {
  if (value > 0 && !config.contains(key)) config[key] = value;
}

// Returns whether so many key-value heads divide the config's heads. The class's number is that of one published size,
// and transformers cannot run a model by it whose heads it does not divide.
bool fits_heads(const json& config, int64_t kv_heads) {
  const auto heads = config.find("num_attention_heads");
  return heads != config.end() && heads->is_number_integer() && kv_heads > 0 && heads->get<int64_t>() % kv_heads == 0;
}

}  // namespace

json with_defaults(json config, const std::string& family) {
  const auto* of = std::ranges::find(kConfigDefaults, std::string_view(family), &ConfigDefaults::family);
  if (of == std::end(kConfigDefaults)) return config;
  if (fits_heads(config, of->kv_heads)) add(config, "num_key_value_heads", of->kv_heads);
  add(config, "head_dim", of->head_dim);
  add(config, "rms_norm_eps", of->epsilon);
  add(config, "max_position_embeddings", of->positions);
  return config;
}

}  // namespace collimate::shape
