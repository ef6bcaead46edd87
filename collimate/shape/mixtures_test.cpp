// Mixtures as their published config.json say them.
#include <gmock/gmock.h>

#include "collimate/base/at.h"
#include "collimate/shape/outline.h"
#include "collimate/shape/param_spec.h"
#include "tests/support/base/error_of.h"
#include "tests/support/shape/parameter_count.h"

namespace collimate::shape {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// mistralai/Mixtral-8x7B-v0.1
json mixtral_config() {
  return json::parse(R"({"architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
    "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
    "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02,
    "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 32000})");
}

// Qwen/Qwen1.5-MoE-A2.7B
json qwen2_moe_config() {
  return json::parse(R"({"architectures": ["Qwen2MoeForCausalLM"], "bos_token_id": 151643, "eos_token_id": 151643,
    "hidden_act": "silu", "hidden_size": 2048, "intermediate_size": 5632, "max_position_embeddings": 8192,
    "max_window_layers": 21, "model_type": "qwen2_moe", "num_attention_heads": 16, "num_hidden_layers": 24,
    "num_key_value_heads": 16, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936, "decoder_sparse_step": 1,
    "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4,
    "num_experts": 60, "norm_topk_prob": false, "output_router_logits": false, "router_aux_loss_coef": 0.001})");
}

// Qwen/Qwen3-30B-A3B
json qwen3_moe_config() {
  return json::parse(R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "bos_token_id": 151643,
    "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
    "intermediate_size": 6144, "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
    "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true, "num_attention_heads": 32,
    "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
    "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
    "use_sliding_window": false, "vocab_size": 151936})");
}

json dots_config() {
  return json::parse(R"({"architectures": ["Dots1ForCausalLM"], "model_type": "dots1", "vocab_size": 152064,
    "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 62,
    "num_attention_heads": 32, "num_key_value_heads": 32, "n_shared_experts": 2, "n_routed_experts": 128,
    "n_group": 1, "topk_group": 1, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "norm_topk_prob": true,
    "routed_scaling_factor": 2.5, "scoring_func": "noaux_tc", "hidden_act": "silu",
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-05, "rope_theta": 10000000, "sliding_window": null,
    "max_window_layers": 62, "tie_word_embeddings": false, "attention_bias": false})");
}

std::string refusal_of(const json& config) {
  return base::message_of([&] { parse_model_shape(config, "c"); });
}

// The numbers that their pages on Hugging Face tell.
TEST(Mixtures, HaveThePublishedParameters) {
  EXPECT_EQ(parameter_count(parse_model_shape(mixtral_config(), "c")), 46702792704);
  EXPECT_EQ(parameter_count(parse_model_shape(qwen2_moe_config(), "c")), 14315784192);
  EXPECT_EQ(parameter_count(parse_model_shape(qwen3_moe_config(), "c")), 30532122624);
  EXPECT_NEAR(static_cast<double>(parameter_count(parse_model_shape(dots_config(), "c"))), 142.8e9, 0.1e9);
}

// Qwen3-Coder-30B-A3B is Qwen3-30B-A3B with other numbers, and a 0 for shared experts.
TEST(Mixtures, SharedExpertsMayBeNone) {
  json coder = qwen3_moe_config();
  coder.update({{"shared_expert_intermediate_size", 0}, {"qkv_bias", false}, {"use_qk_norm", true}});
  EXPECT_EQ(parameter_count(parse_model_shape(coder, "c")), 30532122624);
  for (const json& none : {json(0), json(nullptr)}) {
    json config = dots_config();
    config["n_shared_experts"] = none;
    const ModelShape shape = parse_model_shape(config, "c");
    EXPECT_EQ(shape.blocks.back().mlp.experts.shared, 0) << none;
    EXPECT_EQ(to_config(shape).at("n_shared_experts"), 0) << "other readers have a default of their own";
    EXPECT_EQ(parse_model_shape(to_config(shape), "again").blocks, shape.blocks);
  }
}

// A token meets 12.9 of Mixtral's 46.7 billion.
TEST(Mixtures, ATokenMeetsFewOfTheExperts) {
  EXPECT_NEAR(active_parameters(outline_of(parse_model_shape(mixtral_config(), "c"))), 12.88e9, 0.02e9);
}

TEST(Mixtures, ConfigsGoRoundAndBack) {
  json windows = qwen3_moe_config();
  windows["use_sliding_window"] = true;
  windows["sliding_window"] = 4096;
  windows["decoder_sparse_step"] = 2;
  windows["mlp_only_layers"] = {1, 3};
  json second = qwen2_moe_config();
  second["use_sliding_window"] = true;
  second["sliding_window"] = 4096;
  json groups = dots_config();
  groups["n_group"] = 8;
  groups["topk_group"] = 4;
  groups["sliding_window"] = 512;
  groups["max_window_layers"] = 20;
  for (const json& config :
       {mixtral_config(), qwen2_moe_config(), qwen3_moe_config(), dots_config(), windows, second, groups}) {
    const ModelShape shape = parse_model_shape(config, "config");
    const ModelShape again = parse_model_shape(to_config(shape), "again");
    EXPECT_EQ(shape.blocks, again.blocks) << config.dump();
    EXPECT_EQ(shape.rope_theta, again.rope_theta);
  }
}

TEST(Mixtures, KeysSayWhichBlocksHaveExperts) {
  json config = qwen2_moe_config();
  config["num_hidden_layers"] = 6;
  config["decoder_sparse_step"] = 2;
  config["mlp_only_layers"] = {3};
  const ModelShape shape = parse_model_shape(config, "c");
  std::vector<int64_t> experts;
  for (const Block& block : shape.blocks) experts.push_back(block.mlp.experts.count);
  EXPECT_EQ(experts, (std::vector<int64_t>{0, 60, 0, 0, 0, 60}));
  EXPECT_TRUE(shape.blocks[1].mlp.experts.shared_gate);
  EXPECT_EQ(shape.blocks[1].mlp.experts.balance, 0.001);
}

TEST(Mixtures, KeysSayWhichBlocksHaveWindows) {
  const auto windows = [](const json& config) {
    std::vector<int64_t> all;
    for (const Block& block : parse_model_shape(config, "c").blocks) all.push_back(block.attention.window);
    return all;
  };
  json config = qwen2_moe_config();
  config["num_hidden_layers"] = 4;
  EXPECT_EQ(windows(config), std::vector<int64_t>(4));
  config["use_sliding_window"] = true;
  config["sliding_window"] = 100;
  EXPECT_EQ(windows(config), (std::vector<int64_t>{100, 0, 100, 0}));
  config["max_window_layers"] = 2;
  EXPECT_EQ(windows(config), (std::vector<int64_t>{100, 0, 0, 0}));
  config["layer_types"] = {"full_attention", "full_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(windows(config), (std::vector<int64_t>{0, 0, 0, 100}));
  config.erase("sliding_window");
  EXPECT_EQ(windows(config), (std::vector<int64_t>{0, 0, 0, 4096}));
}

TEST(Mixtures, WhatCannotBeRunIsNamed) {
  json config = mixtral_config();
  config["router_jitter_noise"] = 0.1;
  EXPECT_THAT(refusal_of(config), HasSubstr("[c router_jitter_noise] expected 0, got 0.1"));
  config = mixtral_config();
  config["num_experts_per_tok"] = 9;
  EXPECT_THAT(refusal_of(config), HasSubstr("[c num_experts_per_tok] expected a whole number from 1 to 8, got 9"));
  config.erase("num_local_experts");
  EXPECT_THAT(refusal_of(config), HasSubstr("[c experts] expected two or more"));
  config = qwen2_moe_config();
  config["num_hidden_layers"] = 2;
  config["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_THAT(refusal_of(config), HasSubstr("[c layer_types] expected \"full_attention\" alone without a window, got"));
  config["layer_types"] = {"full_attention"};
  EXPECT_THAT(refusal_of(config), HasSubstr("[c layer_types] expected 2 of "));
  config = qwen3_moe_config();
  config["mlp_only_layers"] = {"all"};
  EXPECT_THAT(refusal_of(config), HasSubstr("[c mlp_only_layers] expected a list of layers"));
  config = dots_config();
  config["n_group"] = 3;
  EXPECT_THAT(refusal_of(config), HasSubstr("[c n_group] expected a divisor of 128 experts, got 3"));
  config["n_group"] = 64;
  EXPECT_THAT(refusal_of(config), HasSubstr("[c num_experts_per_tok] expected at most 2 of the chosen groups, got 6"));
}

}  // namespace
}  // namespace collimate::shape
