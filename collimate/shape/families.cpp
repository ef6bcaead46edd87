#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/missing_parts.h"

// This list has a line for each file of family/: the function that returns its families.
// clang-format off
#define COLLIMATE_FAMILIES \
  bloom_families(), \
  cohere_families(), \
  cwm_families(), \
  deepseek_families(), \
  ernie_families(), \
  exaone4_families(), \
  falcon_families(), \
  gemma_families(), \
  glm_families(), \
  gpt2_families(), \
  gpt_neo_families(), \
  gpt_neox_families(), \
  gpt_oss_families(), \
  gptj_families(), \
  granite_families(), \
  helium_families(), \
  hunyuan_families(), \
  llama_families(), \
  mixture_families(), \
  nemotron_families(), \
  olmo_families(), \
  opt_families(), \
  phi3_families(), \
  phi_families(), \
  qwen_families(), \
  seed_oss_families(), \
  smollm3_families(), \
  stablelm_families(), \
  starcoder2_families()
// clang-format on

namespace collimate::shape {

std::vector<Family> COLLIMATE_FAMILIES;  // declares all of these functions

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

ModuleNames bloom_names() {
  ModuleNames names = gpt2_names();
  names.embedding = "transformer.word_embeddings";
  names.attention_norm = "input_layernorm";
  names.query_key_value = {"self_attention.query_key_value"};
  names.attention_output = "self_attention.dense";
  names.mlp_norm = "post_attention_layernorm";
  names.up = {"mlp.dense_h_to_4h"};
  names.down = "mlp.dense_4h_to_h";
  return names;
}

Family family_of(const char* name, const std::string& classes, decltype(Family::parse) parse,
                 decltype(Family::add_config) add_config, const ModuleNames& names) {
  return {name, classes + "ForCausalLM", classes + "ForSequenceClassification", parse, add_config, names};
}

Family with_usual_keys(Family family) {
  family.has_usual_keys = true;
  return family;
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

ModuleNames paired(ModuleNames names) {
  names.paired = true;
  return names;
}

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> all;
    for (const auto& some : {COLLIMATE_FAMILIES}) all.insert(all.end(), some.begin(), some.end());
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
    if (family.name == name || std::ranges::count(family.other_types, name) > 0) return family;
  std::string got = name.empty() ? "nothing" : "'" + name + "'";
  if (const std::string missing = missing_parts(name); !missing.empty())
    got += fmt::format(", which needs what is missing here: {}", missing);
  throw base::InputError(base::expectation(where, fmt::format("one of {}", fmt::join(known_families(), ", ")), got));
}

}  // namespace collimate::shape
