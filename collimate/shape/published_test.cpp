// Configs of families as hubs have them, what else they are called there, and what is refused by name.
#include <gmock/gmock.h>

#include "collimate/shape/family.h"
#include "collimate/shape/missing_parts.h"
#include "collimate/shape/outline.h"
#include "collimate/shape/param_spec.h"
#include "tests/support/base/error_of.h"

namespace collimate::shape {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Checkpoint {
  const char* name;
  const char* config;
  int64_t parameters;  // counted by transformers 5.23 on its meta device, with the biases of choices
};

const Checkpoint kCheckpoints[] = {
    {"microsoft/phi-2",
     R"({"architectures": ["PhiForCausalLM"], "bos_token_id": 50256, "eos_token_id": 50256, "hidden_act": "gelu_new",
      "hidden_size": 2560, "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
      "model_type": "phi", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
      "partial_rotary_factor": 0.4, "qk_layernorm": false, "rope_scaling": null, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "vocab_size": 51200})",
     2779683840},
    {"stabilityai/stablelm-2-1_6b",
     R"({"architectures": ["StableLmForCausalLM"], "bos_token_id": 100257, "eos_token_id": 100257, "hidden_act": "silu",
      "hidden_size": 2048, "intermediate_size": 5632, "layer_norm_eps": 1e-05, "max_position_embeddings": 4096,
      "model_type": "stablelm", "num_attention_heads": 32, "num_hidden_layers": 24, "num_key_value_heads": 32,
      "partial_rotary_factor": 0.25, "rope_theta": 10000, "tie_word_embeddings": false, "use_qkv_bias": true,
      "vocab_size": 100352})",
     1644515328},
    {"HuggingFaceTB/SmolLM3-3B",
     R"({"architectures": ["SmolLM3ForCausalLM"], "attention_bias": false, "eos_token_id": 128012, "hidden_act": "silu",
      "hidden_size": 2048, "intermediate_size": 11008, "max_position_embeddings": 65536, "max_window_layers": 28,
      "mlp_bias": false, "model_type": "smollm3", "no_rope_layer_interval": 4, "num_attention_heads": 16,
      "num_hidden_layers": 36, "num_key_value_heads": 4, "pad_token_id": 128004, "rms_norm_eps": 1e-06,
      "rope_scaling": null, "rope_theta": 5000000.0, "sliding_window": null, "tie_word_embeddings": true,
      "use_sliding_window": false, "vocab_size": 128256})",
     3075098624},
    {"ByteDance-Seed/Seed-OSS-36B-Instruct",
     R"({"architectures": ["SeedOssForCausalLM"], "attention_bias": true, "attention_out_bias": false, "bos_token_id":
      0, "eos_token_id": 2, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 27648,
      "max_position_embeddings": 524288, "mlp_bias": false, "model_type": "seed_oss", "num_attention_heads": 80,
      "num_hidden_layers": 64, "num_key_value_heads": 8, "pad_token_id": 1, "rms_norm_eps": 1e-06, "rope_scaling":
      {"rope_type": "default"}, "rope_theta": 10000000.0, "tie_word_embeddings": false, "vocab_size": 155136})",
     36151104512},
    {"baidu/ERNIE-4.5-0.3B-PT",
     R"({"architectures": ["Ernie4_5ForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "head_dim": 128, "hidden_act":
      "silu", "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 131072, "model_type":
      "ernie4_5", "num_attention_heads": 16, "num_hidden_layers": 18, "num_key_value_heads": 2, "pad_token_id": 0,
      "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": true, "use_bias":
      false, "vocab_size": 103424})",
     360748032},
    {"zai-org/glm-4-9b-chat-hf",
     R"({"architectures": ["GlmForCausalLM"], "attention_bias": true, "eos_token_id": [151329, 151336, 151338],
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13696,
      "max_position_embeddings": 131072, "model_type": "glm", "num_attention_heads": 32, "num_hidden_layers": 40,
      "num_key_value_heads": 2, "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1.5625e-07,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 151552})",
     9399951360},
    {"zai-org/GLM-4-9B-0414",
     R"({"architectures": ["Glm4ForCausalLM"], "attention_bias": true, "eos_token_id": [151329, 151336, 151338, 151348],
      "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13696,
      "max_position_embeddings": 32768, "model_type": "glm4", "num_attention_heads": 32, "num_hidden_layers": 40,
      "num_key_value_heads": 2, "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 151552})",
     9400279040},
    {"zai-org/GLM-4.5-Air",
     R"({"architectures": ["Glm4MoeForCausalLM"], "attention_bias": true, "eos_token_id": [151329, 151336, 151338],
      "first_k_dense_replace": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size":
      10944, "max_position_embeddings": 131072, "model_type": "glm4_moe", "moe_intermediate_size": 1408, "n_group": 1,
      "n_routed_experts": 128, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 96,
      "num_experts_per_tok": 8, "num_hidden_layers": 46, "num_key_value_heads": 8, "num_nextn_predict_layers": 1,
      "pad_token_id": 151329, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta":
      1000000, "routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1, "use_qk_norm": false,
      "vocab_size": 151552})",
     106852251264},
    {"allenai/OLMo-2-1124-7B",
     R"({"architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "eos_token_id": 100257, "hidden_act":
      "silu", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type":
      "olmo2", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "pad_token_id":
      100277, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000, "tie_word_embeddings": false,
      "vocab_size": 100352})",
     7298617344},
    {"allenai/Olmo-3-1025-7B",
     R"({"architectures": ["Olmo3ForCausalLM"], "attention_bias": false, "eos_token_id": 100257, "hidden_act":
      "silu", "hidden_size": 4096, "intermediate_size": 11008, "max_position_embeddings": 65536, "model_type":
      "olmo3", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "pad_token_id":
      100277, "rms_norm_eps": 1e-06, "rope_scaling": {"attention_factor": 1.2079441541679836, "beta_fast": 32,
      "beta_slow": 1, "factor": 8.0, "original_max_position_embeddings": 8192, "rope_type": "yarn"}, "rope_theta":
      500000, "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 100278})",
     7298011136},
    {"LGAI-EXAONE/EXAONE-4.0-32B",
     R"({"architectures": ["Exaone4ForCausalLM"], "bos_token_id": 1, "eos_token_id": 361, "head_dim": 128,
      "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 27392, "max_position_embeddings": 131072,
      "model_type": "exaone4", "num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8,
      "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 16.0, "high_freq_factor": 4.0,
      "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta":
      1000000, "sliding_window": 4096, "sliding_window_pattern": "LLLG", "tie_word_embeddings": false,
      "vocab_size": 102400})",
     32003216384},
    {"ibm-granite/granite-3.3-2b-instruct",
     R"({"architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_multiplier": 0.015625,
      "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size":
      2048, "intermediate_size": 8192, "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias":
      false, "model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads":
      8, "pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
      "rope_theta": 10000000.0, "tie_word_embeddings": true, "vocab_size": 49159})",
     2533539840},
    {"CohereForAI/c4ai-command-r7b-12-2024",
     R"({"architectures": ["Cohere2ForCausalLM"], "attention_bias": false, "bos_token_id": 5, "eos_token_id":
      255001, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
      "layer_norm_eps": 1e-05, "logit_scale": 0.25, "max_position_embeddings": 8192, "model_type": "cohere2",
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pad_token_id": 0,
      "rope_scaling": null, "rope_theta": 50000, "sliding_window": 4096, "sliding_window_pattern": 4, "use_cache":
      true, "vocab_size": 256000})",
     8028033024},
    {"nvidia/Minitron-4B-Base",
     R"({"architectures": ["NemotronForCausalLM"], "attention_bias": false, "bos_token_id": 2, "eos_token_id": 3,
      "head_dim": 128, "hidden_act": "relu2", "hidden_size": 3072, "intermediate_size": 9216,
      "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "nemotron", "norm_eps": 1e-05,
      "num_attention_heads": 24, "num_hidden_layers": 32, "num_key_value_heads": 8, "partial_rotary_factor": 0.5,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 256000})",
     4190509056},
    {"tencent/Hunyuan-7B-Instruct",
     R"({"architectures": ["HunYuanDenseV1ForCausalLM"], "attention_bias": false, "bos_token_id": 1, "eos_token_id":
      127960, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
      "max_position_embeddings": 262144, "mlp_bias": false, "model_type": "hunyuan_v1_dense",
      "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pad_token_id": 127961,
      "rms_norm_eps": 1e-05, "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0,
      "mscale": 1.0, "mscale_all_dim": 1.0, "type": "dynamic"}, "tie_word_embeddings": true, "use_qk_norm": true,
      "vocab_size": 128167})",
     7504568320},
    {"allenai/OLMoE-1B-7B-0924",
     R"({"architectures": ["OlmoeForCausalLM"], "attention_bias": false, "clip_qkv": null, "eos_token_id": 50279,
      "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 1024, "max_position_embeddings": 4096,
      "model_type": "olmoe", "norm_topk_prob": false, "num_attention_heads": 16, "num_experts": 64,
      "num_experts_per_tok": 8, "num_hidden_layers": 16, "num_key_value_heads": 16, "pad_token_id": 1,
      "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.01, "tie_word_embeddings": false,
      "vocab_size": 50304})",
     6919161856},
    {"openai/gpt-oss-20b",
     R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true, "eos_token_id": 200002, "experts_per_token": 4,
      "head_dim": 64, "hidden_act": "silu", "hidden_size": 2880, "initial_context_length": 4096, "intermediate_size":
      2880, "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
      "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
      "output_router_logits": false,
      "pad_token_id": 199999, "quantization_config": {"quant_method": "mxfp4"}, "rms_norm_eps": 1e-05, "rope_scaling":
      {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096, "rope_type":
      "yarn", "truncate": false}, "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128,
      "swiglu_limit": 7.0, "tie_word_embeddings": false, "vocab_size": 201088})",
     20914757184},
    {"tiiuae/falcon-7b",
     R"({"alibi": false, "architectures": ["FalconForCausalLM"], "bias": false, "bos_token_id": 11, "eos_token_id": 11,
      "hidden_size": 4544, "layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": true,
      "new_decoder_architecture": false, "num_attention_heads": 71, "num_hidden_layers": 32, "parallel_attn": true,
      "vocab_size": 65024})",
     6921720704},
    {"tiiuae/falcon-40b",
     R"({"alibi": false, "architectures": ["FalconForCausalLM"], "bias": false, "bos_token_id": 11, "eos_token_id": 11,
      "hidden_size": 8192, "layer_norm_epsilon": 1e-05, "model_type": "falcon", "new_decoder_architecture": true,
      "num_attention_heads": 128, "num_hidden_layers": 60, "num_kv_heads": 8, "parallel_attn": true, "vocab_size":
      65024})",
     41303293952},
    {"ibm-granite/granite-3.1-1b-a400m-instruct",
     R"({"architectures": ["GraniteMoeForCausalLM"], "attention_bias": false, "attention_multiplier": 0.015625,
      "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 1024,
      "intermediate_size": 512, "logits_scaling": 6.0, "max_position_embeddings": 131072, "model_type": "granitemoe",
      "num_attention_heads": 16, "num_experts_per_tok": 8, "num_hidden_layers": 24, "num_key_value_heads": 8,
      "num_local_experts": 32, "pad_token_id": 0, "residual_multiplier": 0.22, "rms_norm_eps": 1e-06, "rope_scaling":
      null, "rope_theta": 1500000, "router_aux_loss_coef": 0.0, "tie_word_embeddings": true, "vocab_size": 49155})",
     1334628352},
    {"CohereForAI/c4ai-command-r-plus",
     R"({"architectures": ["CohereForCausalLM"], "attention_bias": false, "bos_token_id": 5, "eos_token_id": 255001,
      "hidden_act": "silu", "hidden_size": 12288, "intermediate_size": 33792, "layer_norm_eps": 1e-05, "logit_scale":
      0.8333333333333334, "max_position_embeddings": 131072, "model_type": "cohere", "num_attention_heads": 96,
      "num_hidden_layers": 64, "num_key_value_heads": 8, "pad_token_id": 0, "rope_theta": 75000000.0,
      "tie_word_embeddings": true, "use_qk_norm": true, "vocab_size": 256000})",
     103810674688},
    {"moonshotai/Kimi-K2-Instruct",
     R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "aux_loss_alpha": 0.001, "bos_token_id":
      163584, "eos_token_id": 163585, "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 7168,
      "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 131072, "model_type": "kimi_k2",
      "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 384, "n_shared_experts":
      1, "norm_topk_prob": true, "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61,
      "num_key_value_heads": 64, "num_nextn_predict_layers": 0, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
      "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 1.0, "beta_slow": 1.0, "factor":
      32.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
      "rope_theta": 50000.0, "routed_scaling_factor": 2.827, "scoring_func": "sigmoid", "seq_aux": true,
      "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size":
      163840})",
     1026408232448},
};

int64_t values_of(const ModelShape& shape) {
  int64_t values = 0;
  for (const ParamSpec& spec : param_specs(shape)) values += spec.count();
  return values;
}

TEST(Checkpoints, HaveTheirParametersAndGoRoundAndBack) {
  for (const Checkpoint& one : kCheckpoints) {
    const json config = json::parse(one.config);
    const ModelShape shape = parse_model_shape(config, one.name);
    EXPECT_EQ(values_of(shape), one.parameters) << one.name;
    const json written = to_config(shape);
    const ModelShape again = parse_model_shape(json::parse(written.dump()), "again");
    EXPECT_EQ(to_config(again), written) << one.name;
    EXPECT_EQ(again.blocks, shape.blocks) << one.name;
    for (const auto& [key, value] : config.items()) {
      if (!written.contains(key) || key == "num_nextn_predict_layers") continue;
      if (value.is_number() || value.is_boolean()) {
        EXPECT_EQ(written.at(key), value) << one.name << " " << key;
      }
    }
  }
}

// The planner's outline, of a config and of the shape made of it, differs by norms, biases and those of choices alone.
TEST(Checkpoints, OutlinesCountTheSameMatrices) {
  for (const Checkpoint& one : kCheckpoints) {
    const json config = json::parse(one.config);
    const ModelShape shape = parse_model_shape(config, one.name);
    double matrices = 0;
    for (const ParamSpec& spec : param_specs(shape))
      if (spec.sizes.size() == 2) matrices += static_cast<double>(spec.count());
    EXPECT_EQ(total_parameters(outline_of(shape)), matrices) << one.name;
    EXPECT_EQ(total_parameters(parse_outline(config, "c")), matrices) << one.name;
  }
}

// Kimi K2 is a DeepSeek-V3 under a name that transformers does not know: it is read, and written, as one.
TEST(Checkpoints, OfAnotherNameAreThoseOfTheirFamily) {
  json config = json::parse(std::end(kCheckpoints)[-1].config);
  ASSERT_EQ(config.at("model_type"), "kimi_k2");
  const ModelShape kimi = parse_model_shape(config, "c");
  config["model_type"] = "deepseek_v3";
  EXPECT_EQ(to_config(kimi), to_config(parse_model_shape(config, "c")));
  EXPECT_EQ(to_config(kimi).at("model_type"), "deepseek_v3");
  EXPECT_EQ(parse_outline(json::parse(std::end(kCheckpoints)[-1].config), "c").latent.kv_rank, 512);
}

TEST(Checkpoints, ListsOfLayersThatTurnAreChecked) {
  json config = json::parse(kCheckpoints[2].config);
  ASSERT_EQ(config.at("model_type"), "smollm3");
  const ModelShape by_default = parse_model_shape(config, "c");
  for (int64_t layer = 0; layer < by_default.layers(); ++layer)
    EXPECT_EQ(by_default.blocks[static_cast<size_t>(layer)].attention.rotary, layer % 4 != 3) << layer;
  for (const json& wrong : {json::array({1, 0}), json("1"), json(std::vector<int>(36, 2))}) {
    config["no_rope_layers"] = wrong;
    EXPECT_EQ(base::message_of([&] { parse_model_shape(config, "c"); }),
              "[c no_rope_layers] expected 36 of 1 and 0, got " + wrong.dump());
  }
}

TEST(Checkpoints, OfExaone4HaveWindowsInLayersThatTurn) {
  json config = json::parse(kCheckpoints[10].config);
  ASSERT_EQ(config.at("model_type"), "exaone4");
  const auto windows = [&] {
    std::string text;
    for (const Block& block : parse_model_shape(config, "c").blocks)
      text += block.attention.rotary ? block.attention.window > 0 ? 'L' : 'T' : 'G';
    return text.substr(0, 6) + text.substr(60);
  };
  EXPECT_EQ(windows(), "LLLGLLLLLG");
  config["sliding_window_pattern"] = "LLLLL";  // but for the last layer
  EXPECT_EQ(windows(), "LLLLLLLLLG");
  config["sliding_window_pattern"] = 3;
  EXPECT_EQ(windows(), "LLGLLGLLGL");
  config["sliding_window_pattern"] = "LXG";
  EXPECT_EQ(base::message_of([&] { windows(); }),
            "[c sliding_window_pattern] expected L and G, as \"LLLG\", got 'LXG'");
  config["sliding_window_pattern"] = config["sliding_window"] = nullptr;
  EXPECT_EQ(windows(), "TTTTTTTTTT");
}

// As google/gemma-3-4b-it has it, and as Qwen2.5-VL was published: the language model's keys in the whole.
TEST(TextPart, IsReadOfAConfigThatLeavesOutDefaults) {
  const json config = {{"model_type", "gemma3"},
                       {"eos_token_id", {1, 106}},
                       {"text_config",
                        {{"hidden_size", 2560},
                         {"intermediate_size", 10240},
                         {"model_type", "gemma3_text"},
                         {"num_hidden_layers", 34},
                         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                         {"sliding_window", 1024}}},
                       {"vision_config", {{"hidden_size", 1152}}}};
  const ModelShape shape = parse_model_shape(config, "c");
  EXPECT_EQ(shape.family, "gemma3_text");
  EXPECT_EQ(shape.text_part_of, "gemma3");
  EXPECT_EQ(shape.vocabulary, 262208);
  EXPECT_EQ(shape.layers(), 34);
  EXPECT_EQ(shape.blocks[0].attention.heads, 8);
  EXPECT_EQ(shape.blocks[0].attention.kv_heads, 4);
  EXPECT_EQ(shape.blocks[0].attention.window, 1024);
  EXPECT_EQ(shape.max_positions, 131072);
  EXPECT_EQ(shape.positions(), 131072) << "the factor is in max_position_embeddings already";
  EXPECT_TRUE(shape.tied_embeddings);
  EXPECT_EQ(shape.eos_ids, (std::vector<int64_t>{1, 106}));
}

TEST(TextPart, OfAnotherFamilyIsNamed) {
  const auto error = [](const json& text) {
    return base::message_of([&] { parse_model_shape({{"model_type", "mistral3"}, {"text_config", text}}, "c"); });
  };
  EXPECT_EQ(error({{"model_type", "ministral3"}}),
            "[c text_config model_type] expected one of gemma3_text, llama, mistral, qwen2, qwen3, got \"ministral3\"");
  EXPECT_EQ(error(3), "[c text_config] expected an object, got number");
  EXPECT_EQ(base::message_of([] {
              parse_model_shape({{"model_type", "mistral3"}}, "c");
            }),
            "[c text_config] expected an object, got nothing");
}

std::string refusal_of(const char* model_type) {
  return base::message_of([&] { parse_model_shape({{"model_type", model_type}}, "c"); });
}

TEST(MissingParts, AreNamedWhereAPublishedDecoderIsRefused) {
  EXPECT_THAT(refusal_of("qwen3_next"),
              HasSubstr("got 'qwen3_next', which needs what is missing here: linear attention whose recurrent state"));
  EXPECT_THAT(refusal_of("glm4v"), HasSubstr("images as input"));
  EXPECT_THAT(refusal_of("no_such_model"), testing::EndsWith("got 'no_such_model'"));
}

TEST(MissingParts, AreOfNoFamilyThatRuns) {
  for (const Family& family : families()) {
    EXPECT_EQ(missing_parts(family.name), "") << family.name;
    for (const std::string& other : family.other_types) EXPECT_EQ(missing_parts(other), "") << other;
  }
}

}  // namespace
}  // namespace collimate::shape
