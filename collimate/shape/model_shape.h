#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::shape {

enum class Head { kLanguageModel, kScore, kValue };

// Everything about a decoder that its config.json says, in one vocabulary for all families. Counts, not bytes.
struct ModelShape {
  std::string family;  // "llama", "mistral", "qwen2", "gpt2": a name in model/arch/
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate = 0;
  int64_t max_positions = 0;
  float norm_epsilon = 1e-5F;
  std::string activation = "silu";  // "silu" (gated MLP), "gelu_new", "gelu"
  bool tied_embeddings = false;
  bool attention_bias = false;  // q, k, v
  bool output_bias = false;     // attention output projection
  bool mlp_bias = false;
  double rope_theta = 10000.0;
  nlohmann::json rope_scaling;  // null, or the "rope_scaling" object: linear, dynamic, llama3
  Head head = Head::kLanguageModel;
  std::vector<int64_t> eos_ids;
  int64_t bos_id = -1;
  int64_t pad_id = -1;
};

// Parses a Hugging Face config.json. Unknown architecture, missing or absurd numbers: InputError naming file and key.
ModelShape parse_model_shape(const nlohmann::json& config, const std::string& where);
ModelShape read_model_shape(const std::string& directory);
// The config.json that gives this shape back.
nlohmann::json to_config(const ModelShape& shape);

// Floating-point operations of one forward over `tokens` tokens of sequences of length `context`; a multiply-add is
// two.
double forward_flops(const ModelShape& shape, int64_t tokens, int64_t context);

// Names of the families that parse_model_shape knows, and of a head: "lm", "score", "value".
const std::vector<std::string>& known_families();
// InputError on another name.
Head parse_head(const std::string& name);
const char* head_name(Head head);
// Contradictions between the numbers (heads that do not divide, an odd rotary dim …): InputError naming `where`.
void validate(const ModelShape& shape, const std::string& where);

}  // namespace collimate::shape
