// Keys that many families have: each reads them, or refuses them by name.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <set>

#include "collimate/shape/family.h"
#include "tests/support/base/error_of.h"

namespace collimate::shape {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A config of each family, without its rope.
std::map<std::string, json> family_configs() {
  std::map<std::string, json> configs;
  for (const json& one : json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/families.json"))) {
    json config = one.at("config");
    for (const char* key : {"rope_scaling", "rope_parameters"}) config.erase(key);
    configs.emplace(config.at("model_type"), config);
  }
  EXPECT_EQ(configs.size(), families().size());
  return configs;
}

std::string refused_by(const json& config) {
  return base::message_of([&] { parse_model_shape(config, "c"); });
}

// As a file would give it back.
ModelShape written_again(const ModelShape& shape) {
  return parse_model_shape(json::parse(to_config(shape).dump()), "again");
}

const std::set<std::string> kUnscaled = {"bloom", "gpt2", "gpt_neo", "gptj", "opt", "qwen"};  // no rope that scales

TEST(Rope, EveryFamilyReadsItsScalingOrRefusesIt) {
  for (auto& [family, config] : family_configs())
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      config[key] = json::object();
      EXPECT_EQ(refused_by(config), "") << family;
      config[key] = {{key == std::string("rope_scaling") ? "type" : "rope_type", "linear"}, {"factor", 4.0}};
      if (kUnscaled.contains(family)) {
        EXPECT_THAT(refused_by(config),
                    HasSubstr(fmt::format("[c {}] expected none: {} has no RoPE that scales", key, family)));
      } else {
        const ModelShape shape = parse_model_shape(config, "c");
        EXPECT_EQ(shape.rope_scaling, json({{"rope_type", "linear"}, {"factor", 4.0}})) << family;
        EXPECT_EQ(written_again(shape).rope_scaling, shape.rope_scaling) << family;
      }
      config.erase(key);
    }
}

TEST(Rope, EveryFamilyReadsTheBaseThatStandsBesideTheScaling) {
  const std::map<std::string, double> unusual = {{"mixtral", 1e6},  {"gemma3_text", 1e6}, {"smollm3", 2e6},
                                                 {"ernie4_5", 5e5}, {"olmo3", 5e5},       {"cohere", 5e5},
                                                 {"helium", 1e5},   {"cwm", 1e6},         {"gpt_oss", 1.5e5}};
  for (auto& [family, config] : family_configs())
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      if (kUnscaled.contains(family)) continue;
      for (const char* usual : {"rope_theta", "rotary_emb_base"}) config.erase(usual);
      const double by_default = parse_model_shape(config, "c").rope_theta;
      EXPECT_EQ(by_default, unusual.contains(family) ? unusual.at(family) : 1e4) << family;
      config[key] = {{"rope_type", "default"}};
      EXPECT_EQ(parse_model_shape(config, "c").rope_theta, by_default) << family;
      config[key]["rope_theta"] = 5e5;
      EXPECT_EQ(parse_model_shape(config, "c").rope_theta, 5e5) << family;
      config.erase(key);
    }
}

// transformers takes the older key where there are both.
TEST(Rope, RopeScalingCountsWhereBothAreSaid) {
  json config = family_configs().at("llama");
  config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 7.0}};
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 3.0}};
  EXPECT_EQ(parse_model_shape(config, "c").rope_scaling, config["rope_scaling"]);
  config["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_TRUE(parse_model_shape(config, "c").rope_scaling.is_null());
}

TEST(Rope, TheTurnedPartOfAHeadStandsInEither) {
  for (const char* family : {"gpt_neox", "phi3"})
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      json config = family_configs().at(family);
      config["head_dim"] = 8;
      config[key] = {{"rope_type", "default"}, {"partial_rotary_factor", 0.75}};
      EXPECT_EQ(parse_model_shape(config, "c").blocks[0].attention.turned(), 6) << family;
    }
}

TEST(Rope, KindsOfLayersHaveRopesOfTheirOwnInTwoFamilies) {
  const json both = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}}},
                     {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 77.0}}}};
  json config = family_configs().at("qwen3");
  config["rope_parameters"] = both;
  EXPECT_THAT(refused_by(config),
              HasSubstr("[c rope_parameters full_attention] expected one rope for all layers, got an object"));
  config = family_configs().at("gemma3_text");
  config["rope_theta"] = 5e5;
  config["rope_parameters"] = both;
  const ModelShape shape = parse_model_shape(config, "c");
  EXPECT_EQ(shape.rope_scaling.at("factor"), 8);
  EXPECT_EQ(shape.rope_theta, 5e5);
  EXPECT_EQ(shape.blocks[0].attention.rope_theta, 77);
  config["rope_parameters"].erase("full_attention");
  EXPECT_EQ(parse_model_shape(config, "c").blocks[0].attention.rope_theta, 77);
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  EXPECT_EQ(parse_model_shape(config, "c").rope_scaling.at("factor"), 2);
}

// As OLMo 3 is published, one rope is said, which is scaled where a layer has no window.
TEST(Rope, LayersOfOlmo3WithAWindowTurnUnscaled) {
  json config = family_configs().at("olmo3");
  config["rope_theta"] = 300.0;
  EXPECT_EQ(parse_model_shape(config, "c").blocks[0].attention.rope_theta, 0);
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  const ModelShape shape = parse_model_shape(config, "c");
  EXPECT_EQ(shape.rope_theta, 300);
  EXPECT_EQ(shape.blocks[0].attention.rope_theta, 300);
  EXPECT_EQ(shape.blocks[1].attention.rope_theta, 0);
  EXPECT_EQ(written_again(shape).blocks, shape.blocks);
}

TEST(Rope, AnAlphaOfHunyuanStretchesItsBase) {
  json config = family_configs().at("hunyuan_v1_dense");
  config["rope_theta"] = 100.0;
  config["rope_scaling"] = {{"type", "dynamic"}, {"alpha", 9.0}, {"factor", 1.0}};
  const ModelShape shape = parse_model_shape(config, "c");
  EXPECT_DOUBLE_EQ(shape.rope_theta, 100.0 * 81);  // of four channels
  EXPECT_TRUE(shape.rope_scaling.is_null());
  EXPECT_EQ(written_again(shape).rope_theta, shape.rope_theta);
}

// A program that infers the size of cosines and sines itself (vLLM's DeepSeek) needs both of the numbers.
TEST(Rope, YarnGoesRoundAndBackInEveryFamily) {
  for (auto& [family, config] : family_configs()) {
    if (kUnscaled.contains(family)) continue;
    config["rope_scaling"] = {{"type", "yarn"},   {"factor", 40.0},        {"original_max_position_embeddings", 16},
                              {"mscale", 1.2},    {"mscale_all_dim", 0.7}, {"beta_fast", 16.0},
                              {"truncate", false}};
    const ModelShape shape = parse_model_shape(config, "c");
    const json written = to_config(shape).at("rope_scaling");
    for (const char* key : {"factor", "mscale", "mscale_all_dim", "beta_fast", "truncate"})
      EXPECT_EQ(written.at(key), config["rope_scaling"].at(key)) << family << " " << key;
    const double inferred = (0.12 * std::log(40.0) + 1) / (0.07 * std::log(40.0) + 1);
    EXPECT_DOUBLE_EQ(written.at("attention_factor"), inferred) << family;
    EXPECT_EQ(written_again(shape).rope_scaling, shape.rope_scaling) << family;
    config["rope_scaling"].erase("mscale");
    EXPECT_FALSE(to_config(parse_model_shape(config, "c")).at("rope_scaling").contains("mscale")) << family;
  }
}

// As Qwen2.5's and Qwen3's cards say: a rope_scaling is added, max_position_embeddings stays.
TEST(Rope, YarnReachesItsFactorTimesTheOriginalPositions) {
  json config = family_configs().at("llama");
  config["max_position_embeddings"] = 100;
  EXPECT_EQ(parse_model_shape(config, "c").positions(), 100);
  config["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 100}};
  const ModelShape shape = parse_model_shape(config, "c");
  EXPECT_EQ(shape.positions(), 400);
  EXPECT_EQ(to_config(shape).at("max_position_embeddings"), 100);
  config["rope_scaling"]["original_max_position_embeddings"] = 10;
  EXPECT_EQ(parse_model_shape(config, "c").positions(), 100);
}

// By what transformers computes under these names (ACT2FN).
TEST(Activations, HaveTheNamesOfTransformers) {
  const std::map<std::string, Activation> names = {{"gelu", Activation::kGelu},
                                                   {"gelu_python", Activation::kGelu},
                                                   {"gelu_new", Activation::kGeluTanh},
                                                   {"gelu_pytorch_tanh", Activation::kGeluTanh},
                                                   {"gelu_python_tanh", Activation::kGeluTanh},
                                                   {"gelu_fast", Activation::kGeluTanh},
                                                   {"gelu_accurate", Activation::kGeluTanh},
                                                   {"relu", Activation::kRelu},
                                                   {"relu2", Activation::kReluSquared}};
  for (const std::string family : {"gpt2", "gpt_neo", "gpt_neox", "gptj", "opt"}) {
    json config = family_configs().at(family);
    const char* key = family == "gpt_neox" ? "hidden_act" : "activation_function";
    for (const auto& [name, activation] : names) {
      config[key] = name;
      const ModelShape shape = parse_model_shape(config, "c");
      EXPECT_EQ(shape.blocks.back().mlp.activation, activation) << family << " " << name;
      EXPECT_EQ(written_again(shape).blocks, shape.blocks) << family << " " << name;
    }
    config[key] = "quick_gelu";
    EXPECT_THAT(refused_by(config),
                HasSubstr(fmt::format("[c {}] expected one of gelu, gelu_new, relu, relu2, gelu_accurate, ", key)));
    config.erase(key);
    const Activation by_default = family == "opt"        ? Activation::kRelu
                                  : family == "gpt_neox" ? Activation::kGelu
                                                         : Activation::kGeluTanh;
    EXPECT_EQ(parse_model_shape(config, "c").blocks.back().mlp.activation, by_default) << family;
  }
}

}  // namespace
}  // namespace collimate::shape
