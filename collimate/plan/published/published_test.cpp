#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "collimate/base/error.h"
#include "collimate/plan/published/fit.h"
#include "collimate/plan/published/report.h"
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
  EXPECT_EQ(groups.places.at("generate").devices, 4);
  EXPECT_EQ(groups.places.at("ref").devices, 2);
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

// A file from a spreadsheet, with rows that cannot be: they are listed, the others are predicted.
TEST(Rows, BadOnesAreListedAndTheRestPredicted) {
  const std::string text = std::string("\xEF\xBB\xBF") + kHeader + "7,P,too,few\n" + ",P\n" + kPpo + "8,P,PPO,\"" +
                           std::string(100000, '9') + "\",7,7,7,8,A100,512,128,896,verl,,time,1,,s,step,,,\n";
  const std::vector<Result> results =
      evaluate(parse_rows(text, "r"), [](const std::string& name) { return constants_of(name); });
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].reason, "4 fields instead of 22");
  EXPECT_EQ(results[1].id, "row 2");
  EXPECT_TRUE(results[2].modelled());
  EXPECT_THAT(results[3].reason, testing::HasSubstr("'actor' has 100000 characters"));
}

TEST(Rows, PlacementsThatCannotBeAreNamed) {
  const auto reason = [](const char* placement) {
    return reason_of(fmt::format("1,P,PPO,7,7,7,7,16,A800,1024,,,verl,,time,1,,s,step,\"{}\",,\n", placement));
  };
  for (const char* bad : {"ratio 1:1:1", "99999999999999999999/1/1/1", "4/4/0/0", "8/8/4/4", "12 train:8 gen", "0:16",
                          "60% inference : 50% training", "99999999999999999999:1", "5:6"})
    EXPECT_THAT(reason(bad), testing::HasSubstr("placement '" + std::string(bad) + "' of 16 devices")) << bad;
  EXPECT_THAT(reason_of("1,P,PPO,7,7,7,7,16,A800,0x16,,,verl,,time,1,,s,step,,,\n"), testing::HasSubstr("'0x16'"));
  EXPECT_THAT(reason_of("1,P,PPO,7,7,7,7,16,A800,64,,99999999999999999999,verl,,time,1,,s,step,,,\n"),
              testing::HasSubstr("lengths"));
  EXPECT_THAT(reason_of("1,P,PPO,7,7,7,7,16,A800,64,,128,overlap,,time,1,,s,step,,,\n"),
              testing::HasSubstr("software of 'overlap'"));
  EXPECT_THAT(reason_of("1,P,PPO,7,7,7,7,16,A800,64,,128,verl,,time,nan,,s,step,,,\n"), testing::HasSubstr("'nan'"));
  EXPECT_THAT(reason_of("1,P,PPO,7,7,7,7,16,A800,64,,128,verl,,time,1,,fortnights,step,,,\n"),
              testing::HasSubstr("unit fortnights"));
}

TEST(Rows, SystemsByTheWordTheyBeginWith) {
  for (const auto& [system, backend] : {std::pair("VeRL", "verl"),
                                        {"verl fully_async", "verl"},
                                        {"overlap", ""},
                                        {"Sync.AReaL", "areal"},
                                        {"ReaL-Heuristic", "real"},
                                        {"real-time", ""},
                                        {"ReaLHF", "real"},
                                        {"DeepSpeed-Chat HE", "deepspeed-chat"},
                                        {"xverl", ""},
                                        {"ChatLearn 0.1", "chatlearn-megatron"},
                                        {"ChatLearn 1.0", "chatlearn-vllm"},
                                        {"HybridFlow", "hybridflow"},
                                        {"best of OpenRLHF", ""}})
    EXPECT_EQ(backend_of(system), backend) << system;
}

TEST(Rows, NetworksAsTheRowStatesThem) {
  const auto network = [](const char* gpu) {
    return scenario(fmt::format("1,P,PPO,7,7,7,7,16,\"{}\",64,,128,verl,,time,1,,s,step,,,\n", gpu)).gpu;
  };
  EXPECT_EQ(network("A100-80GB").network_bytes_per_second, 25e9);
  EXPECT_EQ(network("A800-80GB (8/node, 800 Gb RDMA)").network_bytes_per_second, 12.5e9);
  EXPECT_EQ(network("H800-80GB (8/node, 400Gb IB)").network_bytes_per_second, 6.25e9);
  EXPECT_EQ(network("A100-80GB (8/node, 200 Gbps)").network_bytes_per_second, 3.125e9);
  EXPECT_EQ(network("Hopper (8x200Gb RoCEv2)").network_bytes_per_second, 25e9);
  EXPECT_EQ(network("A100-80GB (4/node)").per_node, 4);
}

// Forms of 2409.19256 and 2312.11819 by their names: sets take their stages side by side.
TEST(Rows, FormsByName) {
  const auto form = [](const char* placement, const char* algo = "PPO") {
    return scenario(
        fmt::format("1,P,{},7,7,7,7,16,A100,1024,1024,1024,HybridFlow,,time,1,,s,step,{},,\n", algo, placement));
  };
  EXPECT_EQ(form("colocate").sharing, Sharing::kColocated);
  EXPECT_EQ(form("standalone").places.at("critic").devices, 4);
  EXPECT_EQ(form("standalone").places.at("generate").set, form("standalone").places.at("actor").set);
  EXPECT_EQ(form("split").places.at("ref").set, form("split").places.at("actor").set);
  EXPECT_NE(form("split").places.at("reward").set, form("split").places.at("actor").set);
  EXPECT_EQ(form("interleaving").places.at("actor").devices, 16);
  EXPECT_EQ(form("interleaving").places.at("ref").devices, 8);
  EXPECT_EQ(form("separation").staleness, 0);
  EXPECT_EQ(form("separation").train_devices, 8);
  EXPECT_EQ(form("split", "ReMax").generations, 2);
  EXPECT_FALSE(form("split", "ReMax").models.contains("critic"));
  EXPECT_EQ(form("split", "Safe-RLHF").rewards, 2);
  EXPECT_FALSE(form("colocate").sharded_training);
  // Split trains side by side what colocation trains in turns, on half of the devices each.
  const Constants c = constants_of("hybridflow");
  const Prediction split = predict(form("split"), c), all = predict(form("colocate"), c);
  const double trains = std::max(split.seconds("train"), split.seconds("critic_train"));
  const double scores = std::max(split.seconds("ref"), split.seconds("reward") + split.seconds("critic"));
  EXPECT_NEAR(split.step_seconds, split.seconds("generate") + trains + scores + split.transfer_seconds, 1e-9);
  EXPECT_GT(split.seconds("train"), all.seconds("train"));
}

// What an asynchronous run leaves exposed: of the shorter side nothing, of weights always their transfer.
TEST(Predict, WhatAnAsynchronousStepExposes) {
  const auto at = [](const char* placement, const char* phase, const char* system = "verl fully_async") {
    return evaluate_row(
        row_of(fmt::format("1,P,GRPO,7,-,-,rule,32,H20,\"512 prompts x16, mini 32\",,8192,{},,time,1,,s,"
                           "{},{},,\n",
                           system, phase, placement)),
        [](const std::string& name) { return constants_of(name); });
  };
  const Result hidden = at("8 train:24 rollout", "generation");
  EXPECT_TRUE(hidden.modelled());
  EXPECT_GT(hidden.predicted, 0);
  EXPECT_LT(hidden.predicted, 0.1 * at("8 train:24 rollout", "step").predicted);
  EXPECT_GT(at("8 train:24 rollout staleness_threshold=0", "generation").predicted, 10 * hidden.predicted);
  // Rows that are there in time are still waited for; trainers on devices of their own are as much faster as the back
  // end's constants say.
  const Constants c = constants_of("verl");
  EXPECT_EQ(hidden.predicted, c.queue_seconds);
  const double beside = at("colocate", "update_actor").predicted;
  EXPECT_LT(at("16:16 fully async", "update_actor").predicted, 2 * beside / c.own_training * 1.15);
  EXPECT_GT(at("16:16 fully async", "update_actor").predicted, 0.9 * beside / c.own_training);
  // Fully asynchronous runs keep each row's own log-probs; one step off recomputes them.
  EXPECT_THAT(at("16:16 fully async", "old_log_prob").reason, testing::HasSubstr("not modelled"));
  EXPECT_TRUE(at("16:16 one-step-off", "old_log_prob", "verl").modelled());
}

// DeepSpeed-Chat's table 3: the largest OPT that its hybrid engine trains on one GPU.
TEST(Predict, WhichModelsFitOneGpu) {
  const std::pair<const char*, double> largest[] = {
      {"V100-32GB", 2.7}, {"A6000-48GB", 6.7}, {"A100-40GB", 6.7}, {"A100-80GB", 13}};
  for (const auto& [gpu, most] : largest)
    for (const double size : {1.3, 2.7, 6.7, 13.0, 30.0}) {
      const Scenario s =
          scenario(fmt::format("1,P,PPO (step 3),{},0.35,{},0.35,1,{},0.5M tok/step,256,256,DeepSpeed-Chat "
                               "HE,,status,,,,step,,,\n",
                               size, size, gpu));
      EXPECT_EQ(predict(s, constants_of("deepspeed-chat")).misfit.empty(), size <= most) << gpu << " " << size;
    }
}

// What the constants were fitted to stays what it is, whatever file is read.
TEST(Results, FittedRowsAreThoseOfTheFit) {
  ASSERT_FALSE(fitted_rows().empty());
  const auto constants = [](const std::string& name) { return constants_of(name); };
  const Result other = evaluate_row(row_of(kPpo), constants);
  EXPECT_TRUE(other.may_fit);
  EXPECT_FALSE(other.fitted);
  const auto nearest = std::find_if(fitted_rows().begin(), fitted_rows().end(),
                                    [&](const FittedRow& row) { return row.id == other.nearest_fitted; });
  ASSERT_NE(nearest, fitted_rows().end());
  EXPECT_EQ(nearest->backend, "deepspeed-chat");
}

// Of the same id and measurement, but another run: not fitted.
TEST(Results, AFittedRowIsOfTheSameRun) {
  const auto fitted = [](const char* id, const char* rest) {
    const Row row =
        row_of(fmt::format("{},P,PPO,7,7,7,7,8,A100-80GB,{},s/iteration,iteration,colocated,,\n", id, rest));
    return is_fitted(row, std::get<Scenario>(scenario_of(row)));
  };
  EXPECT_TRUE(fitted("2", "512,128,128,DeepSpeedChat,,time,72.08,"));
  EXPECT_FALSE(fitted("3", "512,128,128,DeepSpeedChat,,time,72.08,"));
  EXPECT_FALSE(fitted("2", "512,128,128,DeepSpeedChat,,time,72.09,"));
  EXPECT_FALSE(fitted("2", "512,128,384,DeepSpeedChat,,time,72.08,"));
  EXPECT_FALSE(fitted("2", "256,128,128,DeepSpeedChat,,time,72.08,"));
  EXPECT_FALSE(fitted("2", "512,128,128,ReaL,,time,72.08,"));
}

TEST(Results, AReportWithoutRowsThatAreNotModelledHasNoListOfThem) {
  const auto text = [](const std::string& rows) {
    return report_text(
        evaluate(parse_rows(kHeader + rows, "r"), [](const std::string& name) { return constants_of(name); }), {});
  };
  EXPECT_THAT(text(kPpo), testing::Not(testing::HasSubstr("not modelled")));
  EXPECT_THAT(text(std::string(kPpo) + "2,P,PPO,7,,,,8,Ascend,,,,verl,,time,1,,s,step,,,\n"),
              testing::HasSubstr("not modelled, not counted\n  GPU type"));
}

TEST(Results, HoursOfARunAndRangesInOneField) {
  const auto predicted = [](const char* batch, const char* unit, const char* value = "1") {
    return evaluate_row(
        row_of(fmt::format("1,P,PPO,7,7,7,7,8,A100-80GB,{},128,896,DeepSpeedChat,,time,{},,{},iteration,,,\n", batch,
                           value, unit)),
        [](const std::string& name) { return constants_of(name); });
  };
  EXPECT_NEAR(predicted("50k samples", "h").predicted, predicted("", "s").predicted * 50000 / 1024 / 3600, 1e-9);
  EXPECT_THAT(predicted("512", "h").reason, testing::HasSubstr("rows of a run"));
  EXPECT_EQ(predicted("512", "s", "1.8-2.5").published, 1.8);
  EXPECT_EQ(predicted("512", "s", "1.8-2.5").published_high, 2.5);
}

// Times of two units have no order between them.
TEST(Results, RanksAreOfOneUnit) {
  std::vector<Result> results;
  for (const auto& [unit, published, predicted] : {std::tuple("s", 1.0, 1.0),
                                                   {"s", 2.0, 2.0},
                                                   {"s", 3.0, 3.0},
                                                   {"h", 0.1, 10.0},
                                                   {"h", 0.2, 20.0},
                                                   {"h", 0.3, 30.0}}) {
    Result& result = results.emplace_back();
    result.paper = std::string("P");
    result.metric = std::string("time");
    result.unit = std::string(unit);
    result.published = published;
    result.predicted = predicted;
  }
  EXPECT_NEAR(summarise(results).back().rank_correlation, 1, 1e-12);
}

TEST(Results, RanksAndRanges) {
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {10, 20, 90}), 1, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {3, 2, 1}), -1, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 1, 2}, {1, 1, 2}), 1, 1e-12);
}

// Rows made by known constants give those constants' times back.
TEST(Fit, FindsWhatMadeTheRows) {
  Constants truth = constants_of("");
  truth.decode_layer_seconds = 3e-3;
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
  EXPECT_TRUE(fits("64", "32:32", "s"));
  EXPECT_FALSE(fits("128", "64:64", "s"));
  EXPECT_FALSE(fits("64", "colocate", "tok/s/GPU"));
}

}  // namespace
}  // namespace collimate::plan::published
