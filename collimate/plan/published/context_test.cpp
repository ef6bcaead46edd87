// Parts of a row (cp) as published layouts have them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "collimate/plan/published/predict.h"

namespace collimate::plan::published {
namespace {

Scenario parts_run(const std::string& layout) {
  const std::string header =
      "id,paper,algo,actor,critic,ref,reward,n_gpus,gpu_type,batch,prompt_len,gen_len,system,baseline,metric,value,"
      "value_hi,unit,phase,placement,parallelism,note\n";
  const auto read = scenario_of(
      parse_rows(header + fmt::format("1,P,GRPO,Qwen3-235B,-,same,rule,128,H100,512,512,4096,NeMo-RL,,time,1,,s,step,"
                                      "colocated,\"{}\",\n",
                                      layout),
                 "r")
          .at(0));
  if (const auto* reason = std::get_if<std::string>(&read)) throw std::runtime_error(*reason);
  return std::get<Scenario>(read);
}

TEST(ContextParts, AreReadInBothSpellings) {
  const RoleLayout bracketed = parts_run("gen[TP,PP]=[16,1] train[TP,CP,EP,PP,VPP]=[2,4,16,8,n/a]").layout("train");
  EXPECT_EQ(bracketed.tp, 2);
  EXPECT_EQ(bracketed.cp, 4);
  EXPECT_EQ(bracketed.ep, 16);
  EXPECT_EQ(bracketed.pp, 8);
  const RoleLayout without = parts_run("gen[TP,PP]=[16,1] train[TP,EP,PP,VPP]=[2,16,8,n/a]").layout("train");
  EXPECT_EQ(without.tp, 2);
  EXPECT_EQ(without.cp, 0);
  EXPECT_EQ(without.ep, 16);
  EXPECT_EQ(without.pp, 8);
  const Scenario words = parts_run("rollout TP2; train TP2 PP4 CP2");
  EXPECT_EQ(words.layout("train").cp, 2);
  EXPECT_EQ(words.layout("generate").cp, 0);
}

// Generation has the whole rows; what is trained and scored has the parts, and fewer copies of the model.
TEST(ContextParts, AreOfWhatTrainsAndScores) {
  const Constants c = constants_of("nemo-rl");
  const Prediction parts = predict(parts_run("gen[TP,PP]=[16,1] train[TP,CP,EP,PP,VPP]=[2,4,16,8,n/a]"), c);
  EXPECT_EQ(parts.executions.at("train").layout.cp, 4);
  EXPECT_EQ(parts.executions.at("train").layout.dp, 2);
  EXPECT_EQ(parts.executions.at("log_probs").layout.cp, 4);
  EXPECT_EQ(parts.executions.at("generate").layout.cp, 1);
  const Prediction whole = predict(parts_run("gen[TP,PP]=[16,1] train[TP,CP,EP,PP,VPP]=[2,1,16,8,n/a]"), c);
  EXPECT_EQ(whole.executions.at("train").layout.dp, 8);
  EXPECT_NE(parts.phases.at("train").total(), whole.phases.at("train").total());
}

// "DP4 TP1" leaves nothing for a pipeline; without its tp, dp may be of something else.
TEST(ContextParts, StatedCopiesLeaveTheStages) {
  const Constants c = constants_of("nemo-rl");
  const auto generates = [&](const char* layout) {
    return predict(parts_run(layout), c).executions.at("generate").layout;
  };
  EXPECT_EQ(generates("rollout TP8 DP16").pp, 1);
  EXPECT_EQ(generates("rollout TP8 DP8").pp, 2);
  EXPECT_EQ(parts_run("32 GPU/instance DP32/EP32").layout("generate").dp, 0);
}

}  // namespace
}  // namespace collimate::plan::published
