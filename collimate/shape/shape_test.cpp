#include <gtest/gtest.h>

#include "collimate/base/at.h"
#include "collimate/shape/param_spec.h"
#include "tests/support/base/error_of.h"
#include "tests/support/shape/parameter_count.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

json llama_config() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", 32},
          {"hidden_size", 16},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"intermediate_size", 40},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"tie_word_embeddings", true},
          {"eos_token_id", {2, 3}}};
}

json gpt2_config() {
  return {{"model_type", "gpt2"}, {"vocab_size", 20},  {"n_embd", 8},        {"n_head", 2},
          {"n_layer", 1},         {"n_positions", 16}, {"eos_token_id", 19}, {"bos_token_id", 19}};
}

std::string error_of(const json& config) {
  return base::message_of([&] { parse_model_shape(config, "m/config.json"); });
}

int64_t find(const std::vector<ParamSpec>& specs, const std::string& name) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == name) return static_cast<int64_t>(i);
  return -1;
}

TEST(ModelShape, ConfigsGoRoundAndBack) {
  json qwen = llama_config();
  qwen["model_type"] = "qwen2";
  qwen["head_dim"] = 8;
  json scaled = llama_config();
  scaled["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 32}};
  json score = llama_config();
  score["architectures"] = {"LlamaForSequenceClassification"};
  json mistral = llama_config();
  mistral["model_type"] = "mistral";
  mistral["attention_bias"] = true;  // which transformers does not read
  for (const json& config : {llama_config(), gpt2_config(), qwen, scaled, score, mistral}) {
    const ModelShape shape = parse_model_shape(config, "config");
    const json written = to_config(shape);
    EXPECT_EQ(written, to_config(parse_model_shape(written, "again")));
    EXPECT_EQ(parameter_count(shape), parameter_count(parse_model_shape(written, "again")));
  }
  EXPECT_TRUE(parse_model_shape(qwen, "q").blocks[1].attention.bias);
  EXPECT_FALSE(parse_model_shape(qwen, "q").blocks[1].attention.output_bias);
  EXPECT_EQ(parse_model_shape(qwen, "q").blocks[0].attention.head_dim, 8);
  EXPECT_EQ(parse_model_shape(scaled, "s").rope_scaling["factor"], 8.0);
  EXPECT_EQ(parse_model_shape(score, "s").head, Head::kScore);
  EXPECT_EQ(parse_model_shape(llama_config(), "s").eos_ids, (std::vector<int64_t>{2, 3}));
}

// transformers counts these parameters in models of published configs.
struct Published {
  const char* name;
  const char* config;
  int64_t parameters;
};
const Published kPublished[] = {
    {"GPT-J 6B",
     R"({"model_type": "gptj", "architectures": ["GPTJForCausalLM"], "activation_function": "gelu_new",
      "n_embd": 4096, "n_head": 16, "n_inner": null, "n_layer": 28, "n_positions": 2048, "rotary_dim": 64,
      "scale_attn_weights": true, "tie_word_embeddings": false, "vocab_size": 50400, "layer_norm_epsilon":
      1e-05, "eos_token_id": 50256})",
     6050882784},
    {"OPT-350M",
     R"({"model_type": "opt", "architectures": ["OPTForCausalLM"], "_remove_final_layer_norm": false,
      "activation_function": "relu", "do_layer_norm_before": false, "ffn_dim": 4096, "hidden_size": 1024,
      "max_position_embeddings": 2048, "num_attention_heads": 16, "num_hidden_layers": 24, "eos_token_id":
      2, "vocab_size": 50272, "word_embed_proj_dim": 512})",
     331196416},
    {"BLOOM 560M",
     R"({"model_type": "bloom", "architectures": ["BloomForCausalLM"],
      "apply_residual_connection_post_layernorm": false, "layer_norm_epsilon": 1e-05, "n_embed": 1024,
      "n_inner": null, "n_layer": 24, "num_attention_heads": 16, "vocab_size": 250880, "eos_token_id": 2})",
     559214592},
    {"Gemma 2B",
     R"({"model_type": "gemma", "architectures": ["GemmaForCausalLM"], "attention_bias": false, "head_dim":
      256, "hidden_act": "gelu", "hidden_activation": null, "hidden_size": 2048, "intermediate_size":
      16384, "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 18,
      "num_key_value_heads": 1, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0,
      "vocab_size": 256000, "eos_token_id": 1})",
     2506172416},
    {"Gemma 2 2B",
     R"({"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "attention_bias": false,
      "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act":
      "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304,
      "intermediate_size": 9216, "max_position_embeddings": 8192, "num_attention_heads": 8,
      "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "rms_norm_eps":
      1e-06, "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 256000, "eos_token_id": [1,
      107]})",
     2614341888},
    {"Gemma 3 1B",
     R"({"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "attention_bias": false,
      "attn_logit_softcapping": null, "final_logit_softcapping": null, "head_dim": 256,
      "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152, "intermediate_size": 6912,
      "max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 26,
      "num_key_value_heads": 1, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
      "rope_local_base_freq": 10000, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512,
      "sliding_window_pattern": 6, "vocab_size": 262144, "eos_token_id": [1, 106]})",
     999885952},
    {"Phi-4-mini",
     R"({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "attention_bias": false, "hidden_act":
      "silu", "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 131072,
      "num_attention_heads": 24, "num_hidden_layers": 32, "num_key_value_heads": 8,
      "original_max_position_embeddings": 4096, "partial_rotary_factor": 0.75, "rms_norm_eps": 1e-05,
      "rope_scaling": {"type": "longrope"}, "rope_theta": 10000.0, "sliding_window": 262144,
      "tie_word_embeddings": true, "vocab_size": 200064, "eos_token_id": 199999})",
     3836021760},
    {"StarCoder2 3B",
     R"({"model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"], "hidden_act":
      "gelu_pytorch_tanh", "hidden_size": 3072, "intermediate_size": 12288, "max_position_embeddings": 16384,
      "mlp_type": "default", "norm_epsilon": 1e-05, "norm_type": "layer_norm", "num_attention_heads": 24,
      "num_hidden_layers": 30, "num_key_value_heads": 2, "rope_theta": 999999.4420358813, "sliding_window": 4096,
      "use_bias": true, "vocab_size": 49152, "eos_token_id": 0})",
     3030371328},
};

TEST(ModelShape, PublishedConfigsGiveTheirParameters) {
  for (const Published& one : kPublished) {
    json config = json::parse(one.config);
    if (config.contains("rope_scaling") && config["rope_scaling"].is_object())
      config["rope_scaling"]["short_factor"] = config["rope_scaling"]["long_factor"] = std::vector<double>(48, 1.5);
    const ModelShape shape = parse_model_shape(config, one.name);
    EXPECT_EQ(parameter_count(shape), one.parameters) << one.name;
    const json written = to_config(shape);
    EXPECT_EQ(written, to_config(parse_model_shape(written, "again"))) << one.name;
    for (const auto& [key, value] : config.items()) {
      if (!value.is_number_float() || !written.contains(key)) continue;
      EXPECT_EQ(written.at(key), value) << one.name << " " << key;
    }
    EXPECT_EQ(written.contains("auto_map"), shape.family == "qwen") << "transformers has a class: " << one.name;
  }
}

TEST(ModelShape, WrongConfigsAreNamed) {
  json config = llama_config();
  config["model_type"] = "lama";
  EXPECT_EQ(error_of(config), fmt::format("[m/config.json model_type] expected one of {}, got 'lama'",
                                          fmt::join(known_families(), ", ")));
  config = llama_config();
  config.erase("hidden_size");
  EXPECT_EQ(error_of(config), "[m/config.json hidden_size] expected a number, got nothing");
  config = llama_config();
  config["num_hidden_layers"] = -3;
  EXPECT_EQ(error_of(config), "[m/config.json num_hidden_layers] expected a whole number from 1 to 4096, got -3");
  config["num_hidden_layers"] = 18446744073709551615ULL;
  EXPECT_NE(error_of(config), "");
  config = llama_config();
  config["num_key_value_heads"] = 3;
  EXPECT_EQ(error_of(config), "[m/config.json num_key_value_heads] expected a divisor of 4 heads, got 3");
  config = llama_config();
  config["rope_scaling"] = {{"rope_type", "xpos"}, {"factor", 2.0}};
  EXPECT_NE(error_of(config).find("one of default, linear, dynamic, llama3, yarn, longrope, got 'xpos'"),
            std::string::npos);
  config["rope_scaling"] = {{"rope_type", "longrope"}, {"short_factor", {1, 1}}, {"long_factor", {2, 0}}};
  EXPECT_EQ(error_of(config),
            "[m/config.json rope_scaling long_factor] expected a list of positive numbers, got [2,0]");
  config["rope_scaling"]["long_factor"] = {2, 3, 4};
  EXPECT_EQ(error_of(config), "[m/config.json rope_scaling long_factor] expected 2 numbers, got 3 numbers");
  config = llama_config();
  config["num_attention_heads"] = 64;
  EXPECT_NE(error_of(config), "");
  config = llama_config();
  config["num_experts"] = 4;
  config["num_experts_per_tok"] = 2;
  for (const char* dense : {"llama", "gemma2"}) {
    config["model_type"] = dense;
    EXPECT_EQ(error_of(config),
              fmt::format("[m/config.json num_experts] expected none: the family {} has no router, got 4", dense));
  }
}

TEST(ParamSpec, SegmentsOffsetsAndFusedGroups) {
  json config = llama_config();
  config["hidden_size"] = 10;  // counts that are no multiple of 16
  config["num_attention_heads"] = 5;
  config["num_key_value_heads"] = 1;
  const auto specs = param_specs(parse_model_shape(config, "config"));
  const auto floats = segment_floats(specs);
  ASSERT_EQ(floats.size(), 4U);
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t expected =
        specs[i].fused == 0 ? specs[i - 1].offset + specs[i - 1].count() : specs[i].offset / 16 * 16;
    EXPECT_EQ(specs[i].offset, expected) << specs[i].name;
    EXPECT_LE(specs[i].offset + specs[i].count(), base::at(floats, specs[i].segment));
  }
  for (const int64_t segment : floats) EXPECT_EQ(segment % 16, 0);
  EXPECT_EQ(find(specs, "lm_head.weight"), -1);
  EXPECT_EQ(base::at(specs, find(specs, "model.layers.1.mlp.gate_proj.weight")).fused, 2);
  EXPECT_FALSE(base::at(specs, find(specs, "model.norm.weight")).decay);
}

TEST(ParamSpec, Gpt2NamesAndLayout) {
  const auto specs = param_specs(parse_model_shape(gpt2_config(), "config"));
  const auto& fused = base::at(specs, find(specs, "transformer.h.0.attn.c_attn.weight"));
  EXPECT_EQ(fused.sizes, (std::vector<int64_t>{24, 8}));
  EXPECT_TRUE(fused.transposed_in_file);
  EXPECT_EQ(fused.dims[0].blocks, (std::vector<int64_t>{8, 8, 8}));
  EXPECT_EQ(specs[1].name, "transformer.wpe.weight");
  EXPECT_EQ(segment_floats(specs).size(), 3U);
}

TEST(ParamSpec, ParametersCountATiedTableOnce) {
  json config = llama_config();
  const int64_t tied = parameter_count(parse_model_shape(config, "c"));
  config["tie_word_embeddings"] = false;
  const ModelShape shape = parse_model_shape(config, "c");
  const int64_t linear = 16 * (16 + 8 + 8 + 16) + 3 * 16 * 40;
  EXPECT_EQ(parameter_count(shape), 2 * (linear + 32) + 2 * 32 * 16 + 16);
  EXPECT_EQ(parameter_count(shape) - tied, 32 * 16);
}

}  // namespace
}  // namespace collimate::shape
