#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/shape/family.h"

namespace collimate::shape {

ModuleNames gpt2_names() {
  return {.embedding = "transformer.wte",
          .positions = "transformer.wpe",
          .block = "transformer.h.",
          .attention_norm = "ln_1",
          .query_key_value = {"attn.c_attn"},
          .attention_output = "attn.c_proj",
          .mlp_norm = "ln_2",
          .up = {"mlp.c_fc"},
          .down = "mlp.c_proj",
          .final_norm = "transformer.ln_f"};
}

ModuleNames llama_names() {
  return {.embedding = "model.embed_tokens",
          .block = "model.layers.",
          .attention_norm = "input_layernorm",
          .query_key_value = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
          .query_norm = "self_attn.q_norm",
          .key_norm = "self_attn.k_norm",
          .attention_output = "self_attn.o_proj",
          .mlp_norm = "post_attention_layernorm",
          .up = {"mlp.gate_proj", "mlp.up_proj"},
          .down = "mlp.down_proj",
          .final_norm = "model.norm"};
}

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> all;
    for (const auto& some : {bloom_families(), deepseek_families(), gemma_families(), gpt2_families(),
                             gpt_neo_families(), gpt_neox_families(), gptj_families(), llama_families(),
                             mixture_families(), opt_families(), phi3_families(), qwen_families()})
      all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end(), [](const Family& a, const Family& b) { return a.name < b.name; });
    return all;
  }();
  return kFamilies;
}

const std::vector<std::string>& known_families() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Family& family : families()) names.push_back(family.name);
    return names;
  }();
  return kNames;
}

const Family& find_family(const std::string& name, const std::string& where) {
  for (const Family& family : families())
    if (family.name == name) return family;
  throw base::InputError(base::expectation(where, fmt::format("one of {}", fmt::join(known_families(), ", ")),
                                           name.empty() ? "nothing" : "'" + name + "'"));
}

}  // namespace collimate::shape
