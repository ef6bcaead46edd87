#include "collimate/rlhf/modules/reward.h"

#include <gtest/gtest.h>

#include <fstream>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/rules.h"
#include "collimate/text/test_files.h"

namespace collimate::rlhf {
namespace {

// A tokenizer of the characters "0", "1", ",", "ä" as ids 4 to 7; 1 is EOS.
class RewardModuleTest : public testing::Test {
 protected:
  RewardModuleTest() {
    std::ofstream(directory_.path("tokenizer_config.json")) << R"({"char_ords": [48, 49, 44, 228]})";
    std::ofstream(directory_.path("config.json")) << R"({"eos_token_id": 1})";
  }

  // Rows of the prompt "0" and a completion.
  Batch score(const std::vector<std::vector<int32_t>>& completions, const std::string& function) {
    RewardModule module({{"tokenizer", directory_.path()}, {"rewards", {{{"function", function}, {"weight", 2}}}}});
    flow::Context context;
    module.setup(context);
    std::vector<std::vector<int32_t>> ids;
    std::vector<int64_t> uids;
    for (const auto& completion : completions) {
      ids.push_back({4});
      ids.back().insert(ids.back().end(), completion.begin(), completion.end());
      uids.push_back(static_cast<int64_t>(uids.size()));
    }
    Batch rows;
    rows.set(batch::kUid, uids);
    rows.set_ragged(batch::kIds, ids);
    rows.set(batch::kPromptTokens, std::vector<int64_t>(ids.size(), 1));
    return module.call("score", rows, {});
  }

  text::TemporaryDirectory directory_;
};

TEST_F(RewardModuleTest, StepsLieOnTheTokensThatEndThem) {
  // A step ends behind each comma; "ä" has two bytes. All of it is worth 1.
  register_reward("commas", [](const nlohmann::json&) {
    return function_reward([](const RewardSample& sample) {
      std::vector<StepReward> steps;
      for (size_t i = 0; i < sample.completion.size(); ++i)
        if (sample.completion[i] == ',') steps.push_back({i + 1, 0.25});
      return Score(1.0, steps);
    });
  });
  const Batch out = score({{7, 6, 5, 6, 1}, {5, 4, 1}, {1}, {5, 6}}, "commas");
  EXPECT_EQ(out.all(batch::kReward), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(out.all(batch::kStep), (std::vector<int32_t>{-1, 0, 0, 1, 1, 2, -1, 0, 0, 0, -1, 0, -1, 0, 0}));
  EXPECT_EQ(out.all(batch::kStepRewards), (std::vector<float>{0, 0, 0.5F, 0, 0.5F, 1, 0, 0, 0, 2, 0, 2, 0, 0, 2}));
}

TEST_F(RewardModuleTest, StepsOfOneTokenAreOne) {
  register_reward("bytes", [](const nlohmann::json&) {
    return function_reward([](const RewardSample&) { return Score(0.75, {{0, 0.25}, {1, 0.25}, {2, 0.25}}); });
  });
  const Batch out = score({{7, 1}, {7}}, "bytes");
  EXPECT_EQ(out.all(batch::kStep), (std::vector<int32_t>{-1, 0, 1, -1, 0}));
  EXPECT_EQ(out.all(batch::kStepRewards), (std::vector<float>{0, 1.5F, 0, 0, 1.5F}));
}

}  // namespace
}  // namespace collimate::rlhf
