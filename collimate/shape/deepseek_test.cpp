// DeepSeek's models and Moonlight as their published config.json say them.
#include <gmock/gmock.h>

#include <cmath>

#include "collimate/base/at.h"
#include "collimate/shape/outline.h"
#include "tests/support/base/error_of.h"
#include "tests/support/shape/parameter_count.h"

namespace collimate::shape {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// deepseek-ai/DeepSeek-V2-Lite
json lite_config() {
  return json::parse(R"({"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "aux_loss_alpha": 0.001,
    "bos_token_id": 100000, "eos_token_id": 100001, "first_k_dense_replace": 1, "hidden_act": "silu",
    "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512, "max_position_embeddings": 163840,
    "model_type": "deepseek_v2", "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1,
    "n_routed_experts": 64, "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16,
    "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16, "q_lora_rank": null,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
                     "original_max_position_embeddings": 4096, "type": "yarn"},
    "rope_theta": 10000, "routed_scaling_factor": 1.0, "scoring_func": "softmax", "seq_aux": true,
    "tie_word_embeddings": false, "topk_group": 1, "topk_method": "greedy", "v_head_dim": 128, "vocab_size": 102400})");
}

// deepseek-ai/DeepSeek-V2
json v2_config() {
  json config = lite_config();
  config.update({{"hidden_size", 5120},
                 {"intermediate_size", 12288},
                 {"moe_intermediate_size", 1536},
                 {"num_hidden_layers", 60},
                 {"num_attention_heads", 128},
                 {"num_key_value_heads", 128},
                 {"n_routed_experts", 160},
                 {"routed_scaling_factor", 16.0},
                 {"q_lora_rank", 1536},
                 {"topk_method", "group_limited_greedy"},
                 {"n_group", 8},
                 {"topk_group", 3}});
  return config;
}

// deepseek-ai/DeepSeek-V3, without its quantization
json v3_config() {
  return json::parse(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "bos_token_id": 0,
    "eos_token_id": 1, "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
    "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
    "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
    "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
    "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
    "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                     "original_max_position_embeddings": 4096, "type": "yarn"},
    "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false,
    "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": 128, "vocab_size": 129280})");
}

// moonshotai/Moonlight-16B-A3B
json moonlight_config() {
  return json::parse(R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "bos_token_id": 163584,
    "eos_token_id": 163585, "first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 2048,
    "intermediate_size": 11264, "kv_lora_rank": 512, "max_position_embeddings": 8192, "model_type": "deepseek_v3",
    "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
    "norm_topk_prob": true, "num_attention_heads": 16, "num_experts_per_tok": 6, "num_hidden_layers": 27,
    "num_key_value_heads": 16, "num_nextn_predict_layers": 0, "q_lora_rank": null, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "rms_norm_eps": 1e-05, "rope_theta": 50000.0, "routed_scaling_factor": 2.446,
    "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
    "v_head_dim": 128, "vocab_size": 163840})");
}

std::string refusal_of(json config, const json& change) {
  config.update(change);
  return base::message_of([&] { parse_model_shape(config, "c"); });
}

// Counted by transformers 5.23 on its meta device, with the biases of choices.
TEST(DeepSeek, HasThePublishedParameters) {
  EXPECT_EQ(parameter_count(parse_model_shape(lite_config(), "c")), 15706484224);
  EXPECT_EQ(parameter_count(parse_model_shape(v2_config(), "c")), 235741434880);
  EXPECT_EQ(parameter_count(parse_model_shape(v3_config(), "c")), 671026419200);
  EXPECT_EQ(parameter_count(parse_model_shape(moonlight_config(), "c")), 15960110208);
}

// The planner's outline, of a config and of the shape made of it, differs by norms and biases of choices alone.
TEST(DeepSeek, OutlinesCountTheSameMatrices) {
  for (const json& config : {lite_config(), v2_config(), v3_config(), moonlight_config()}) {
    const ModelShape shape = parse_model_shape(config, "c");
    double matrices = 0;
    for (const ParamSpec& spec : param_specs(shape))
      if (spec.sizes.size() == 2) matrices += static_cast<double>(spec.count());
    EXPECT_EQ(total_parameters(outline_of(shape)), matrices);
    EXPECT_EQ(total_parameters(parse_outline(config, "c")), matrices);
  }
}

// A token meets 37 of V3's 671 billion (its page), the embedding's table among them.
TEST(DeepSeek, ATokenMeetsFewOfTheExperts) {
  const Outline outline = outline_of(parse_model_shape(v3_config(), "c"));
  EXPECT_NEAR(active_block_parameters(outline) + 2 * table_parameters(outline), 37.5e9, 0.2e9);
}

TEST(DeepSeek, ConfigsGoRoundAndBack) {
  json halves = v3_config();
  halves["rope_interleave"] = false;
  halves["attention_bias"] = true;
  for (const json& config : {lite_config(), v2_config(), v3_config(), moonlight_config(), halves}) {
    const ModelShape shape = parse_model_shape(config, "config");
    const ModelShape again = parse_model_shape(to_config(shape), "again");
    EXPECT_EQ(shape.blocks, again.blocks) << config.dump();
    EXPECT_EQ(shape.rope_theta, again.rope_theta);
    EXPECT_EQ(shape.rope_scaling, again.rope_scaling);
  }
}

// 0.1 · 0.707 · ln 40 + 1, once for queries and once for keys; cosines and sines keep their size.
TEST(DeepSeek, YarnScalesTheScores) {
  const ModelShape lite = parse_model_shape(lite_config(), "c"), moonlight = parse_model_shape(moonlight_config(), "c");
  const double factor = 0.0707 * std::log(40.0) + 1;
  EXPECT_DOUBLE_EQ(lite.blocks[0].attention.scale, factor * factor / std::sqrt(192.0));
  EXPECT_EQ(lite.rope_scaling.at("attention_factor"), 1);
  EXPECT_EQ(moonlight.blocks[0].attention.scale, 0);
}

TEST(DeepSeek, WhatCannotBeRunIsNamed) {
  EXPECT_THAT(refusal_of(lite_config(), {{"topk_method", "noaux_tc"}}),
              HasSubstr("[c topk_method] expected greedy or group_limited_greedy, got 'noaux_tc'"));
  EXPECT_THAT(refusal_of(lite_config(), {{"norm_topk_prob", true}}), HasSubstr("[c norm_topk_prob] expected false"));
  EXPECT_THAT(refusal_of(lite_config(), {{"moe_layer_freq", 2}}),
              HasSubstr("[c moe_layer_freq] expected 1, got 2; try a model whose later blocks all have experts"));
  EXPECT_THAT(refusal_of(lite_config(), {{"num_key_value_heads", 4}}),
              HasSubstr("[c num_key_value_heads] expected 16, one a head, got 4"));
  EXPECT_THAT(refusal_of(v3_config(), {{"scoring_func", "softmax"}}),
              HasSubstr("[c scoring_func] expected sigmoid, got 'softmax'"));
  EXPECT_THAT(refusal_of(v3_config(), {{"n_group", nullptr}}), HasSubstr("[c n_group] expected a number, got nothing"));
  json config = v3_config();
  config.erase("q_lora_rank");
  EXPECT_THAT(refusal_of(config, json::object()), HasSubstr("[c q_lora_rank] expected a number, or null, got nothing"));
  config = v3_config();
  config.erase("norm_topk_prob");
  EXPECT_THAT(refusal_of(config, json::object()), HasSubstr("[c norm_topk_prob] expected true or false, got nothing"));
}

// Rows of files: of each head those that turn are behind the others, and beside their partners.
TEST(DeepSeek, FilesHaveTheTurningRowsLast) {
  for (const bool paired : {true, false}) {
    json config = v3_config();
    config["rope_interleave"] = paired;
    for (const ParamSpec& spec : param_specs(parse_model_shape(config, "c"))) {
      if (spec.name == "model.layers.0.self_attn.q_b_proj.weight") {
        EXPECT_EQ(spec.file_row(192), 192 + 128);  // the second head's first
        EXPECT_EQ(spec.file_row(193), 192 + 128 + (paired ? 2 : 1));
        EXPECT_EQ(spec.file_row(192 + 32), 192 + 128 + (paired ? 1 : 32));
        EXPECT_EQ(spec.file_row(192 + 64), 192);
      } else if (spec.name == "model.layers.0.self_attn.kv_a_proj_with_mqa.weight") {
        EXPECT_EQ(spec.file_row(0), 512);
        EXPECT_EQ(spec.file_row(64), 0);
      }
    }
  }
}

}  // namespace
}  // namespace collimate::shape
