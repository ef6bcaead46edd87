#include "collimate/shape/missing_parts.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace collimate::shape {
namespace {

struct Missing {
  const char* parts;
  std::vector<std::string_view> model_types;
};

// This list names published decoders that are refused, by what they need. When a family is added, its line here goes.
const std::vector<Missing>& missing() {
  static const std::vector<Missing> kMissing = {
      {"linear attention whose recurrent state stands beside keys and values",
       {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "kimi_linear", "minimax",
        "olmo_hybrid", "bailing_hybrid"}},
      {"a recurrent state in place of keys and values",
       {"mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm", "recurrent_gemma"}},
      {"blocks with a recurrent state or a convolution between those with attention",
       {"jamba", "bamba", "falcon_h1", "zamba", "zamba2", "nemotron_h", "granitemoehybrid", "lfm2", "lfm2_moe"}},
      {"images as input; its language model alone may be a family that runs",
       {"gemma3n", "gemma4", "qwen3_vl_moe", "mllama", "llama4", "glm4v", "glm4v_moe", "kimi_k25", "kimi_vl",
        "paligemma", "deepseek_vl", "phi4_multimodal", "cohere2_vision"}},
      {"an encoder", {"t5", "mt5", "bart", "mbart", "pegasus", "marian", "t5gemma", "bert", "roberta", "deberta-v2"}},
      {"norms over all heads of queries and of keys together, ahead of a turn of a part of each", {"minimax_m2"}},
      {"layer norms without weights", {"olmo"}},
      {"layer norms of each head", {"persimmon"}},
      {"queries, keys and values that are bounded", {"dbrx"}},
      {"norms without weights, and of heads behind their turn", {"nanochat"}},
      {"the activation xIELU", {"apertus"}},
      {"factors of what each half adds to the stream beside latent attention", {"minicpm3"}},
      {"factors that follow from the number of layers", {"minicpm"}},
      {"attention within chunks, and queries scaled by their positions", {"llama4_text"}},
      {"queries scaled by their positions", {"ministral3"}},
      {"attention to keys that an indexer chooses", {"deepseek_v32", "glm_moe_dsa"}},
      {"softmax scores of experts that a bias corrects", {"ernie4_5_moe"}},
      {"norms of heads behind their turn beside experts", {"hunyuan_v1_moe"}},
      {"keys and values of few heads in one tensor with the queries of many", {"gpt_bigcode", "internlm2"}},
      {"attention that is a difference of two", {"diffllama"}},
      {"weights of three values", {"bitnet"}},
  };
  return kMissing;
}

}  // namespace

std::string missing_parts(const std::string& model_type) {
  for (const Missing& each : missing())
    if (std::ranges::count(each.model_types, model_type) > 0) return each.parts;
  return "";
}

}  // namespace collimate::shape
