// What rows leave unsaid, and is read from what is known of their software.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "collimate/plan/published/predict.h"

namespace collimate::plan::published {
namespace {

constexpr const char* kUnstatedHeader =
    "id,paper,algo,actor,critic,ref,reward,n_gpus,gpu_type,batch,prompt_len,gen_len,system,baseline,metric,value,"
    "value_hi,unit,phase,placement,parallelism,note\n";

Scenario unstated_run(const std::string& line) {
  const auto read = scenario_of(parse_rows(std::string(kUnstatedHeader) + line, "r").at(0));
  if (const auto* reason = std::get_if<std::string>(&read)) throw std::runtime_error(*reason);
  return std::get<Scenario>(read);
}

// PPO updates eight times an iteration where the row says nothing of it, unless it states what a step is; others once.
TEST(Unstated, UpdatesThatAreNotStated) {
  const auto updates = [](const char* critic, const char* batch) {
    return unstated_run(fmt::format("1,P,PPO,7,{},7,7,8,A100-80GB,\"{}\",256,256,DeepSpeedChat,,time,1,,s,step,,,\n",
                                    critic, batch))
        .load.updates;
  };
  EXPECT_EQ(updates("7", "512"), 8);
  EXPECT_EQ(updates("7", "1024 prompts, 1 PPO epoch"), 8);
  EXPECT_EQ(updates("7", "4"), 4);
  EXPECT_EQ(updates("7", "512, 4 minibatches"), 4);
  EXPECT_EQ(updates("7", "0.5M tok/step"), 1);
  EXPECT_EQ(updates("-", "512"), 1);
}

// Of a pair both rows count in an epoch; and DeepSpeed-Chat decodes in calls of its micro-batch.
TEST(Unstated, EpochsOfPairsAndCallsOfDeepSpeedChat) {
  const auto read = [](const char* system, const char* layout) {
    return unstated_run(
        fmt::format("1,P,PPO,7,7,7,7,16,A100-80GB,\"131.9k pairs/epoch, <=1024 pairs/step\",256,256,{},,"
                    "time,1,,h/epoch,epoch,colocated,{},\n",
                    system, layout));
  };
  EXPECT_EQ(read("DeepSpeed-Chat", "").run_rows, 263800);
  EXPECT_EQ(read("DeepSpeed-Chat", "").load.rows, 1024);
  const Constants c = constants_of("deepspeed-chat");
  const Prediction eights = predict(read("DeepSpeed-Chat", "hybrid engine DP16 TP1 MBS8"), c);
  const Prediction fours = predict(read("DeepSpeed-Chat", "hybrid engine DP16 TP1 MBS4"), c);
  // Adam of OpenRLHF is on the host in all of its own runs; the others' where memory or the row asks for it.
  EXPECT_TRUE(read("OpenRLHF", "").offload);
  EXPECT_FALSE(read("DeepSpeed-Chat", "").offload);
  EXPECT_EQ(eights.executions.at("generate").decoding_rows, 8);
  EXPECT_NEAR(fours.phases.at("generate").latency, 2 * eights.phases.at("generate").latency, 1e-9);
  EXPECT_EQ(eights.executions.at("train").layout.zero, 3);
  EXPECT_EQ(eights.executions.at("train").layout.pp, 1);
  EXPECT_EQ(read("DeepSpeed-Chat", "").call_rows, 32);
  EXPECT_EQ(read("OpenRLHF", "train MBS8").call_rows, 0);
  // Its fused kernels are for OPT's layers: beside a critic of OPT's a 13B model is OPT's as well.
  const auto decodes = [&](const char* actor, const char* critic) {
    const Scenario s = unstated_run(fmt::format(
        "1,P,PPO,{},{},7,7,16,A100-80GB,256,256,256,DeepSpeed-Chat,,time,1,,s,step,colocated,,\n", actor, critic));
    return std::pair(s.models.at("actor").name, predict(s, c).phases.at("generate").latency);
  };
  EXPECT_EQ(decodes("13", "0.35").first, "opt-13b");
  EXPECT_EQ(decodes("13", "13").first, "llama2-13b");
  EXPECT_NEAR(decodes("13", "13").second - decodes("13", "0.35").second, 256 * 40 * 1e-3, 1e-6);
}

// Where only a cap is given, models that reason use a share of it; others have their back end's mean.
TEST(Unstated, LengthsOfWhichOnlyTheCapIsGiven) {
  const auto completion = [](const char* actor, const char* length) {
    return unstated_run(
               fmt::format("1,P,GRPO,{},-,-,rule,32,H20,64,,\"{}\",verl,,time,1,,s,step,colocate,,\n", actor, length))
        .load.completion;
  };
  EXPECT_NEAR(completion("30B-A3B (Qwen3)", "8192").mean(), 0.34 * 8192, 1);
  EXPECT_NEAR(completion("7 (Qwen2.5-Math-7B)", "28672").mean(), constants_of("verl").mean_tokens, 1);
  // A mean that is given comes with the usual spread, whose software it is does not matter.
  const Lengths usual = Lengths::capped_mean(3000, constants_of("").length_sigma, 16384);
  EXPECT_NEAR(completion("7 (Qwen2.5-Math-7B)", "max 16384, avg 3000").mean_square(), usual.mean_square(), 1);
}

}  // namespace
}  // namespace collimate::plan::published
