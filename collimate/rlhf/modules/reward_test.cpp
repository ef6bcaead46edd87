#include "collimate/rlhf/modules/reward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/completion_text.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/rules.h"
#include "tests/support/text/written_files.h"

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
  Batch score(const std::vector<std::vector<int32_t>>& completions, const std::string& function,
              const nlohmann::json& on_error = "stop") {
    RewardModule module({{"tokenizer", directory_.path()},
                         {"rewards", {{{"function", function}, {"weight", 2}, {"on_error", on_error}}}}});
    flow::Context context;
    context.progress = [this] { ++told_; };
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
    Batch scored = module.call("score", rows, {});
    measured_ = module.metrics();
    return scored;
  }

  text::TemporaryDirectory directory_;
  std::vector<flow::Metric> measured_;  // by the last call
  int told_ = 0;                        // that a call goes on
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

TEST_F(RewardModuleTest, FailuresAreCountedNotedAndOutOfTheMean) {
  register_reward("short", [](const nlohmann::json&) {
    return function_reward([](const RewardSample& sample) -> double {
      if (sample.completion.size() > 1) throw std::runtime_error("too long\nby far");
      return 3.0;
    });
  });
  const std::vector<std::vector<int32_t>> completions = {{5, 1}, {5, 5, 1}, {5, 5, 5, 1}, {4, 1}};
  EXPECT_EQ(score(completions, "short", "drop").all(batch::kUid), (std::vector<int64_t>{0, 3}));
  ASSERT_EQ(measured_.size(), 2U);
  EXPECT_EQ(nlohmann::json(measured_[0]).dump(),
            R"(["reward/errors",2.0,"sum",1.0,"[reward short] too long by far; dropped"])");
  EXPECT_EQ(nlohmann::json(measured_[1]).dump(),
            R"(["rewards/short/mean",3.0,"mean",2.0])");  // its weight: two samples
  EXPECT_EQ(score(completions, "short", -0.5).all(batch::kReward), (std::vector<float>{6, -1, -1, 6}));
  EXPECT_EQ(measured_[0].note, "[reward short] too long by far; given -0.5");
}

TEST_F(RewardModuleTest, RewardsOfOneNameHaveAMetricEach) {
  RewardModule module({{"tokenizer", directory_.path()},
                       {"rewards", {{{"rule", "regex"}, {"pattern", "1"}}, {{"rule", "regex"}, {"pattern", "0"}}}}});
  flow::Context context;
  module.setup(context);
  Batch rows;
  rows.set(batch::kUid, std::vector<int64_t>{0});
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{{4, 5, 1}});
  rows.set(batch::kPromptTokens, std::vector<int64_t>{1});
  module.call("score", rows, {});
  const std::vector<flow::Metric> measured = module.metrics();
  ASSERT_EQ(measured.size(), 3U);
  EXPECT_EQ(nlohmann::json(measured[1]).dump(), R"(["rewards/regex/mean",1.0,"mean",1.0])");
  EXPECT_EQ(nlohmann::json(measured[2]).dump(), R"(["rewards/regex_2/mean",0.0,"mean",1.0])");
}

// Samples vote by it: what the reward reads out, else the text without white space at both ends.
TEST_F(RewardModuleTest, AnswersAreEqualWhereTheyVoteTogether) {
  register_reward("reads out some", [](const nlohmann::json&) {
    return function_reward([](const RewardSample& sample) {
      Score score = 0.0;
      if (sample.completion.starts_with("0")) score.answer = "zero";
      return score;
    });
  });
  RewardModule module(
      {{"tokenizer", directory_.path()}, {"rewards", {{{"function", "reads out some"}}}}, {"answers", true}});
  EXPECT_EQ(module.functions().at(0).makes.back(), "answer");
  flow::Context context;
  module.setup(context);
  Batch rows;
  rows.set(batch::kUid, std::vector<int64_t>{0, 1, 2, 3});
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{{4, 4, 5}, {4, 4, 7}, {4, 5, 1}, {4, 7, 1}});
  rows.set(batch::kPromptTokens, std::vector<int64_t>{1, 1, 1, 1});
  const std::vector<int64_t> answers = module.call("score", rows, {}).all(kAnswer);
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_NE(answers[1], answers[2]);
  EXPECT_NE(answers[2], answers[3]);
}

// A tokenizer whose decoding drops the space in front of a text, as Llama's: rewards see the completion that files
// have, which continues its prompt, and steps end at the bytes of that.
TEST(RewardOfSpacedWords, SeesACompletionThatContinuesItsPrompt) {
  const std::string directory = COLLIMATE_SOURCE_DIR "/collimate/text/testdata/sentencepiece";
  const auto words = text::load_tokenizer(directory);
  const std::vector<int32_t> prompt = words->encode("the", {.add_special = true});
  const std::vector<int32_t> completion = words->encode(" cat sat", {.continues = true});
  ASSERT_EQ(words->decode(completion), "cat sat");
  const std::string seen = decoded_sample(prompt, completion, *words).completion;
  EXPECT_EQ(seen, " cat sat");
  EXPECT_EQ(seen, generate::completion_text(*words, prompt, completion, {}));

  register_reward("words", [](const nlohmann::json&) {
    return function_reward([](const RewardSample& sample) {
      return Score(1.0, {{sample.completion.find("cat") + 3, 1.0}});
    });
  });
  RewardModule module({{"tokenizer", directory}, {"rewards", {{{"function", "words"}}}}});
  flow::Context context;
  module.setup(context);
  std::vector<int32_t> ids = prompt;
  ids.insert(ids.end(), completion.begin(), completion.end());
  Batch rows;
  rows.set(batch::kUid, std::vector<int64_t>{0});
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{ids});
  rows.set(batch::kPromptTokens, std::vector<int64_t>{static_cast<int64_t>(prompt.size())});
  const std::vector<float> steps = module.call("score", rows, {}).all(batch::kStepRewards);
  size_t end = prompt.size();  // of the tokens that have " cat"
  for (std::vector<int32_t> head; words->decode(head) != "cat"; ++end) head.push_back(ids[end]);
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], i + 1 == end ? 1.F : 0.F) << i;
}

// A judge may take its time over each.
TEST_F(RewardModuleTest, EachSampleIsToldToTheWorker) {
  register_reward("unhurried",
                  [](const nlohmann::json&) { return function_reward([](const RewardSample&) { return 1.0; }); });
  score({{5, 1}, {5, 5, 1}, {1}}, "unhurried");
  EXPECT_EQ(told_, 3);
}

TEST_F(RewardModuleTest, OneRewardOfAUserJournalsAll) {
  const auto deterministic = [](const nlohmann::json& rewards) {
    return RewardModule({{"tokenizer", ""}, {"rewards", rewards}}).functions().at(0).deterministic;
  };
  const nlohmann::json rule = {{"rule", "exact"}}, own = {{"python", "r.py"}};
  EXPECT_TRUE(deterministic(nlohmann::json::array({rule})));
  EXPECT_FALSE(deterministic(nlohmann::json::array({rule, own})));
  EXPECT_FALSE(deterministic(nlohmann::json::array({own, rule})));
}

TEST(OnErrorValue, IsANumberThatCanBeTrainedOn) {
  EXPECT_EQ(OnError::parse(-1).value, -1.0);
  EXPECT_THROW(OnError::parse(std::nan("")), base::InputError);
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
