#include "collimate/shape/outline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"
#include "tests/support/shape/parameter_count.h"

namespace collimate::shape {
namespace {

// Totals and active counts as the models' own pages state them, in billions.
TEST(Outline, CountsAreThePublishedOnes) {
  const std::tuple<const char*, double, double> published[] = {
      {"llama2-7b", 6.74, 6.74},    {"llama2-13b", 13.02, 13.02},      {"llama2-70b", 68.98, 68.98},
      {"llama3.1-8b", 8.03, 8.03},  {"llama3.1-405b", 405.9, 405.9},   {"qwen2.5-7b", 7.62, 7.62},
      {"qwen3-32b", 32.8, 32.8},    {"opt-6.7b", 6.66, 6.66},          {"opt-175b", 174.6, 174.6},
      {"qwen3-30b-a3b", 30.5, 3.3}, {"qwen3-235b-a22b", 235, 22},      {"mixtral-8x7b", 46.7, 12.9},
      {"deepseek-v3", 671, 37.5},   {"moonlight-16b-a3b", 15.96, 2.9}, {"kimi-k2", 1027, 32.9}};
  for (const auto& [name, total, active] : published) {
    const Outline model = find_outline(name);
    EXPECT_NEAR(total_parameters(model) / 1e9, total, 0.01 * total) << name;
    EXPECT_NEAR(active_parameters(model) / 1e9, active, 0.035 * active) << name;
  }
}

TEST(Outline, AgreesWithTheRunnableShape) {
  const nlohmann::json config = {{"model_type", "llama"},      {"vocab_size", 32000},
                                 {"hidden_size", 4096},        {"num_hidden_layers", 32},
                                 {"num_attention_heads", 32},  {"num_key_value_heads", 8},
                                 {"intermediate_size", 14336}, {"max_position_embeddings", 4096}};
  const ModelShape shape = parse_model_shape(config, "c");
  Outline parsed = parse_outline(config, "c");
  EXPECT_EQ(parsed, outline_of(shape));
  const double norms = 4096.0 * (2 * 32 + 1);
  EXPECT_EQ(total_parameters(parsed) + norms, static_cast<double>(parameter_count(shape)));
}

TEST(Outline, OfAModelThatReadsImagesIsThatOfItsLanguageModel) {
  const nlohmann::json alone = {{"model_type", "llama"},      {"vocab_size", 32064},
                                {"hidden_size", 4096},        {"num_hidden_layers", 32},
                                {"num_attention_heads", 32},  {"num_key_value_heads", 8},
                                {"intermediate_size", 14336}, {"max_position_embeddings", 4096}};
  const nlohmann::json whole = {
      {"model_type", "llava"}, {"text_config", alone}, {"vision_config", {{"hidden_size", 8}}}};
  EXPECT_EQ(parse_outline(whole, "c"), parse_outline(alone, "c"));
  EXPECT_EQ(parse_outline(whole, "c"), outline_of(parse_model_shape(whole, "c")));
  EXPECT_EQ(base::message_of([&] {
              parse_outline({{"model_type", "llava"}}, "c");
            }),
            "[c text_config] expected an object, got nothing");
}

TEST(Outline, ReadsExpertsAndLatentAttention) {
  nlohmann::json config = {{"model_type", "deepseek_v3"}, {"vocab_size", 129280},       {"hidden_size", 7168},
                           {"num_hidden_layers", 61},     {"num_attention_heads", 128}, {"intermediate_size", 18432},
                           {"n_routed_experts", 256},     {"num_experts_per_tok", 8},   {"moe_intermediate_size", 2048},
                           {"n_shared_experts", 1},       {"first_k_dense_replace", 3}, {"q_lora_rank", 1536},
                           {"kv_lora_rank", 512},         {"qk_rope_head_dim", 64},     {"qk_nope_head_dim", 128},
                           {"v_head_dim", 128},           {"num_key_value_heads", 128}};
  Outline parsed = parse_outline(config, "c");
  parsed.name = "deepseek-v3";
  EXPECT_EQ(parsed, find_outline("DeepSeek V3"));
  EXPECT_EQ(cached_values(parsed), 576);
  config.erase("num_experts_per_tok");
  EXPECT_THROW(parse_outline(config, "c"), base::InputError);
}

TEST(Outline, AnUnknownNameGetsTheNearestOne) {
  EXPECT_THAT(base::message_of([&] { find_outline("lama2-70b"); }),
              testing::EndsWith("got 'lama2-70b'; try 'llama2-70b'"));
}

std::string refusal_of_outline(const std::string& name) {
  return base::message_of([&] { find_outline(name); });
}

// A path is not taken for a misspelt name.
TEST(Outline, APathWithoutAModelIsNamed) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "outline_paths";
  fs::remove_all(folder);
  fs::create_directories(folder / "run/model");
  fs::create_directories(folder / "empty");
  const std::string root = folder.string();
  EXPECT_THAT(refusal_of_outline(root + "/empty"),
              testing::AllOf(testing::HasSubstr("got '" + root + "/empty', a directory without it"),
                             testing::EndsWith("or a name that collimate plan --list models shows")));
  std::ofstream(folder / "run/model/config.json") << "{}";
  EXPECT_THAT(refusal_of_outline(root + "/run"), testing::EndsWith("try '" + root + "/run/model'"));
  EXPECT_THAT(refusal_of_outline(root + "/run/model/config.json"), testing::EndsWith("try '" + root + "/run/model'"));
  EXPECT_THAT(refusal_of_outline(root + "/run/modle"),
              testing::EndsWith("modle', which does not exist; try '" + root + "/run/model'"));
  const std::string long_path = "/" + std::string(300, 'x');
  EXPECT_THAT(refusal_of_outline(long_path), testing::HasSubstr("'" + long_path + "', which does not exist"));
  EXPECT_THAT(refusal_of_outline("/no/such"), testing::HasSubstr("'/no/such', which does not exist"));
  fs::remove_all(folder);
}

// The error about a family that is not known names the family, not a key; a decoder with the usual keys is read.
TEST(Outline, AnUnknownFamilyIsNamed) {
  const auto refusal = [](const nlohmann::json& config) -> std::string {
    return base::message_of([&] { parse_outline(config, "c"); });
  };
  EXPECT_THAT(refusal({{"model_type", "bert"}}),
              testing::AllOf(testing::StartsWith("[c model_type] expected a family of decoders that is known"),
                             testing::HasSubstr("got 'bert'")));
  nlohmann::json config = {{"model_type", "other"},  {"vocab_size", 32000},      {"hidden_size", 64},
                           {"num_hidden_layers", 2}, {"num_attention_heads", 4}, {"intermediate_size", 128}};
  EXPECT_EQ(refusal(config), "");
  config["type_vocab_size"] = 2;
  EXPECT_THAT(refusal(config), testing::HasSubstr("got 'other'"));
  EXPECT_THAT(refusal({{"model_type", "llama"}}), testing::HasSubstr("vocab_size"));
}

TEST(Outline, AnySizeHasADenseModel) {
  for (const double billions : {1.0, 7.0, 70.0, 300.0, 1000.0}) {
    const Outline made = find_outline("dense-" + std::to_string(static_cast<int>(billions)) + "b");
    EXPECT_NEAR(block_parameters(made) / 1e9, billions, 0.05 * billions);
    EXPECT_EQ(made.heads % 8, 0);
  }
  EXPECT_FALSE(sized_outline("dense-b"));
  EXPECT_FALSE(sized_outline("dense-300bn"));
}

TEST(Outline, PunctuationDoesNotMatter) {
  for (const char* name : {"opt-13b", "OPT-13B", "opt_13b"}) EXPECT_EQ(find_outline(name).name, "opt-13b") << name;
  EXPECT_EQ(find_outline("opt-1.3b").name, "opt-1.3b");
}

// Names are near by family, then by size; what is suggested can be found.
TEST(Outline, AnUnknownNameGetsTheNearest) {
  const std::pair<const char*, const char*> cases[] = {
      {"gpt5", "gpt3-175b"},       {"lama-7b", "llama2-7b"},         {"llama2-8b", "llama2-7b"},
      {"llama2", "llama2-7b"},     {"opt-12b", "opt-13b"},           {"opt-500m", "opt-350m"},
      {"qwen3-14b", "qwen3-8b"},   {"mistral-8x7b", "mixtral-8x7b"}, {"meta-llama/Llama-2-70b-hf", "llama2-70b"},
      {"deepseek", "deepseek-v3"}, {"405b", "llama3.1-405b"},        {"dense-300", "dense-300b"},
      {"dense-0b", "dense-0.05b"}};
  for (const auto& [name, near] : cases) {
    EXPECT_EQ(nearest_outline(name), near) << name;
    EXPECT_GT(find_outline(near).layers, 0);
    try {
      find_outline(name);
      ADD_FAILURE() << name;
    } catch (const base::InputError& error) {
      EXPECT_TRUE(std::string(error.what()).ends_with("; try '" + std::string(near) + "'")) << error.what();
    }
  }
  for (const char* name : {"foo", "", "?"}) EXPECT_NE(nearest_outline(name), "") << name;
}

// Norms and biases are no part of an outline.
TEST(Outline, ShapesOfOutlinesHaveTheirParameters) {
  std::vector<std::string> names = outline_names();
  names.emplace_back("dense-300b");
  for (const std::string& name : names) {
    const Outline model = find_outline(name);
    const double expected = total_parameters(model);
    EXPECT_NEAR(static_cast<double>(parameter_count(shape_of(model))), expected, 2e-3 * expected) << name;
  }
}

}  // namespace
}  // namespace collimate::shape
