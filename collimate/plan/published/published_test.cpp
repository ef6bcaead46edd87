#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/plan/published/fit.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

constexpr const char* kHeader =
    "id,paper,algo,actor,critic,ref,reward,n_gpus,gpu_type,batch,prompt_len,gen_len,system,baseline,metric,value,"
    "value_hi,unit,phase,placement,parallelism,note\n";
// A row of a fixed run, as many papers have it.
constexpr const char* kPpo =
    "1,P,PPO,7,7,7,7,8,A100-80GB (8/node),512,128,896,DeepSpeedChat,,time,100,,s/iteration,iteration,colocated,,\n";

Row row_of(const std::string& line) { return parse_rows(std::string(kHeader) + line, "r").at(0); }
Scenario scenario(const std::string& line) {
  const auto read = scenario_of(row_of(line));
  if (const auto* reason = std::get_if<std::string>(&read)) throw std::runtime_error(*reason);
  return std::get<Scenario>(read);
}
std::string reason_of(const std::string& line) {
  return evaluate_row(row_of(line), [](const std::string& name) { return constants_of(name); }).reason;
}

TEST(Rows, QuotedFieldsAndWrongFiles) {
  const Row row = row_of("1,\"A \"\"B\"\", C\",PPO,7,,,,8,A100,1,,,x,,time,1,,s,step,,,\"two\nlines\"\n");
  EXPECT_EQ(row["paper"], "A \"B\", C");
  EXPECT_EQ(row["note"], "two\nlines");
  EXPECT_THROW(parse_rows("", "r"), base::InputError);
  EXPECT_THROW(parse_rows("id,paper\n1,2\n", "r"), base::InputError);
  EXPECT_THROW(parse_rows(std::string(kHeader) + "1,2\n", "r"), base::InputError);
  EXPECT_THROW(parse_rows(std::string(kHeader) + "\"1", "r"), base::InputError);
}

TEST(Rows, ModelsInAllTheirSpellings) {
  const std::pair<const char*, const char*> spellings[] = {{"7", "llama2-7b"},
                                                           {"7 (Qwen2.5-Math-7B)", "qwen2.5-7b"},
                                                           {"7 (Qwen2.5-7B multi-turn ReTool)", "qwen2.5-7b"},
                                                           {"30B-A3B (Qwen3)", "qwen3-30b-a3b"},
                                                           {"30B-A3B", "qwen3-30b-a3b"},
                                                           {"235B-A22B", "qwen3-235b-a22b"},
                                                           {"671B-A37B (DeepSeek-V3)", "deepseek-v3"},
                                                           {"Moonlight (16B-A3B)", "moonlight-16b-a3b"},
                                                           {"Kimi-K2 (1T-A32B)", "kimi-k2"},
                                                           {"LLAMA3.1_8B", "llama3.1-8b"},
                                                           {"DeepSeek V3", "deepseek-v3"},
                                                           {"Qwen3-30B3A", "qwen3-30b-a3b"},
                                                           {"0.35", "opt-350m"}};
  for (const auto& [text, name] : spellings) {
    const auto model = model_of(text);
    ASSERT_TRUE(model) << text;
    EXPECT_EQ(model->name, name) << text;
  }
  for (const char* text : {"", "-", "rule", "7-65", "7/32/72", "nonesuch"}) EXPECT_FALSE(model_of(text)) << text;
}

TEST(Rows, BatchesAndLengths) {
  const auto load = [](const char* batch, const char* gen, const char* algo = "GRPO") {
    return scenario(fmt::format("1,P,{},7,-,-,rule,32,H20,\"{}\",,\"{}\",verl,,time,1,,s,step,colocate,,\n", algo,
                                batch, gen))
        .load;
  };
  EXPECT_EQ(load("512 prompts x16, mini 32", "8192").rows, 8192);
  EXPECT_EQ(load("512 prompts x16, mini 32", "8192").updates, 16);
  EXPECT_EQ(load("512 prompts x16, 4 minibatches", "max 27648").updates, 4);
  EXPECT_EQ(load("GBS 2048 (prompts x gens 64x32), train GBS 512", "max total 4096, avg 1060").rows, 2048);
  EXPECT_EQ(load("GBS 2048 (prompts x gens 64x32), train GBS 512", "max total 4096, avg 1060").updates, 4);
  EXPECT_EQ(load("sample_per_episode 1024, train GBS 128", "512").updates, 8);
  EXPECT_EQ(load("<=1024 pairs (0.5M tok)/step", "256").rows, 1024);
  EXPECT_EQ(load("3200 requests", "max 65536, avg 22386").rows, 3200);
  const Workload total = load("64x16", "max total 4096, avg 1060");
  EXPECT_NEAR(total.prompt.mean() + total.completion.mean(), 1060, 2);
  EXPECT_NEAR(total.longest(), 4096, 1);
  EXPECT_TRUE(scenario(kPpo).load.completion.constant());
}

TEST(Rows, LayoutsAndSides) {
  const Scenario nemo = scenario(
      "1,P,GRPO,Qwen3-235B,-,same,rule,256,H100,GBS 512,,512,NeMo-RL,,time,1,,s,step,128 train:64 "
      "gen,\"gen[TP,PP]=[8,1] "
      "train[TP,CP,EP,PP,VPP]=[4,1,16,8,n/a]\",\n");
  EXPECT_EQ(nemo.layout("generate").tp, 8);
  EXPECT_EQ(nemo.layout("train").tp, 4);
  EXPECT_EQ(nemo.layout("train").pp, 8);
  EXPECT_EQ(nemo.layout("train").ep, 16);
  EXPECT_EQ(nemo.train_devices, 128);
  EXPECT_EQ(nemo.generate_devices, 64);
  const Scenario roles = scenario(
      "1,P,PPO,7,7,7,7,8,A800,1024,512,512,ChatLearn 0.1,,time,1,,s,episode,colocated,\"policy TP4, ppo TP4 PP2, "
      "reward "
      "TP2; ref/value 4 GPUs; gen bs128, MBS8\",GPT L32/h4096\n");
  EXPECT_EQ(roles.layout("generate").tp, 4);
  EXPECT_EQ(roles.layout("generate").pp, 0);
  EXPECT_EQ(roles.layout("train").pp, 2);
  EXPECT_EQ(roles.layout("reward").tp, 2);
  EXPECT_EQ(roles.layouts.at("ref").devices, 4);
  EXPECT_EQ(roles.micro_batch, 8);
  EXPECT_EQ(roles.models.at("actor").name, "gpt");
  const auto side = [](const char* placement) {
    return scenario(fmt::format("1,P,GRPO,7,-,-,rule,128,H20,64,,8192,verl,,time,1,,s,step,{},,\n", placement));
  };
  EXPECT_EQ(side("96 rollout:32 train").train_devices, 32);
  EXPECT_EQ(side("75% inference : 25% training").train_devices, 32);
  EXPECT_EQ(side("64:64 staleness_threshold=0.1").staleness, 0.1);
  EXPECT_EQ(side("colocate").sharing, Sharing::kColocated);
  const Scenario groups =
      scenario("1,P,PPO,7,7,7,7,16,A800,1024,,,OpenRLHF,,time,1,,s,step,Actor/Critic/Ref/RM GPUs 4/4/2/2 + vLLM,,\n");
  EXPECT_EQ(groups.group_devices.at("generate"), 4);
  EXPECT_EQ(groups.group_devices.at("ref"), 2);
}

TEST(Rows, WhatIsNotModelledSaysWhy) {
  EXPECT_THAT(reason_of("1,P,PPO,7,,,,,H100,,,,verl,,time,1,,s,step,,,\n"), testing::HasSubstr("number of devices"));
  EXPECT_THAT(reason_of("1,P,PPO,7-65,,,,8,H100,,,,verl,,time,1,,s,step,,,\n"), testing::HasSubstr("no one model"));
  EXPECT_THAT(reason_of("1,P,PPO,7,,,,8,Ascend NPU,,,,verl,,time,1,,s,step,,,\n"), testing::HasSubstr("GPU type"));
  EXPECT_THAT(reason_of("1,P,PPO,7,,,,8,H100,,,,Laminar,,time,1,,s,step,,,\n"), testing::HasSubstr("'Laminar'"));
  EXPECT_THAT(reason_of("1,P,PPO,7,,,,8,H100,,,,verl,,time,1,,s,validate,,,\n"), testing::HasSubstr("'validate'"));
  EXPECT_THAT(reason_of("1,P,PPO,7,,,,8,H100,,,,verl,,colour,1,,s,step,,,\n"), testing::HasSubstr("metric colour"));
}

// One run stated in other units has the same time behind it; no column that names the row matters.
TEST(Predict, UnitsAgreeAndNamesDoNotMatter) {
  const auto constants = [](const std::string& name) { return constants_of(name); };
  const auto predicted = [&](const std::string& id, const std::string& metric, const std::string& unit) {
    return evaluate_row(row_of(id + ",PPO,7,7,7,7,8,A100-80GB,512,128,896,DeepSpeedChat,," + metric + ",100,," + unit +
                               ",iteration,colocated,,\n"),
                        constants)
        .predicted;
  };
  const double seconds = predicted("1,P", "time", "s/iteration");
  EXPECT_EQ(predicted("777,Another paper", "time", "s/iteration"), seconds);
  EXPECT_NEAR(predicted("1,P", "time", "h/1600 steps"), seconds * 1600 / 3600, 1e-9);
  EXPECT_NEAR(predicted("1,P", "throughput", "samples/s"), 512 / seconds, 1e-9);
  EXPECT_NEAR(predicted("1,P", "throughput", "tok/s/GPU"), 512 * 1024 / seconds / 8, 1e-6);
}

TEST(Results, RanksAndRanges) {
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {10, 20, 90}), 1, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {3, 2, 1}), -1, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 1, 2}, {1, 1, 2}), 1, 1e-12);
}

// Rows made by known constants give those constants' times back.
TEST(Fit, FindsWhatMadeTheRows) {
  Constants truth = constants_of("");
  truth.decode_layer_seconds = 5e-4;
  truth.train_efficiency = 0.3;
  std::string text = kHeader;
  for (const char* actor : {"7", "13"})
    for (const int length : {128, 384, 896})
      text += fmt::format("1,P,PPO,{},7,{},7,16,A100-80GB,{},128,{},DeepSpeedChat,,time,1,,s/iteration,iteration,,,\n",
                          actor, actor, 131072 / (length + 128), length);
  const std::vector<Row> rows = parse_rows(text, "r");
  std::vector<Sample> samples = samples_of(rows, "deepspeed-chat");
  ASSERT_EQ(samples.size(), 6U);
  for (Sample& sample : samples) sample.published = predict(sample.scenario, truth).step_seconds;
  EXPECT_GT(mismatch(samples, constants_of("")), 0.3);
  EXPECT_LT(mismatch(samples, fit(samples, "deepspeed-chat")), 0.06);
}

TEST(Fit, KeptRowsAreNotFitted) {
  const auto fits = [](const char* devices, const char* placement, const char* unit) {
    const Row row = row_of(
        fmt::format("1,P,GRPO,7,-,-,rule,{},H20,64,,8192,verl,,time,1,,{},step,{},,\n", devices, unit, placement));
    return may_fit(row, std::get<Scenario>(scenario_of(row)));
  };
  EXPECT_TRUE(fits("64", "colocate", "s"));
  EXPECT_FALSE(fits("128", "colocate", "s"));
  EXPECT_FALSE(fits("64", "32:32", "s"));
  EXPECT_FALSE(fits("64", "colocate", "tok/s/GPU"));
}

}  // namespace
}  // namespace collimate::plan::published
