#include "collimate/recipe/learning_watch.h"

#include <gmock/gmock.h>

namespace collimate::recipe {
namespace {

using testing::HasSubstr;

base::MetricsRecord record_of(const std::vector<std::pair<std::string, double>>& values) {
  base::MetricsRecord record;
  record.values = values;
  return record;
}

// Gives what is said after so many lines, and expects the earlier ones to say nothing.
std::vector<std::string> said_after(int lines, const base::MetricsRecord& record) {
  LearningWatch watch;
  for (int i = 1; i < lines; ++i) EXPECT_TRUE(watch.add(record).empty()) << i;
  return watch.add(record);
}

TEST(LearningWatch, SaysAfterTenIterationsWhatLasts) {
  const auto said = [](const std::vector<std::pair<std::string, double>>& values) {
    const std::vector<std::string> all = said_after(10, record_of(values));
    return all.size() == 1 ? all[0] : "";
  };
  EXPECT_THAT(said({{"critic/rewards/frac_zero_std", 1}}), HasSubstr("had equal rewards in 10 iterations in a row"));
  EXPECT_THAT(said({{"critic/rewards/max", 0.5}, {"critic/rewards/min", 0.5}}), HasSubstr("had equal rewards"));
  const auto all = [](double reward) {
    return record_of({{"critic/rewards/max", reward}, {"critic/rewards/min", reward}});
  };
  EXPECT_THAT(said_after(10, all(1)).at(0),
              HasSubstr("all rewards were 1 in 10 iterations in a row, and nothing can be "
                        "learned from them: the prompts are solved, or too easy"));
  EXPECT_THAT(said_after(10, all(0)).at(0), HasSubstr("all rewards were 0 in 10 iterations in a row"));
  EXPECT_THAT(said({{"response_length/clip_ratio", 1}}), HasSubstr("every completion was cut at its limit"));
  EXPECT_THAT(said({{"response_length/clip_ratio", 1}, {"rollout/turns/mean", 1}}),
              HasSubstr("if no turn ends, try turn_tokens of the gym entry or a text in rollout.stop"));
  EXPECT_THAT(said({{"actor/grad_norm", 0}}), HasSubstr("the gradient was 0 in 10 iterations in a row"));
  EXPECT_EQ(said({{"actor/grad_norm", 0}, {"critic/rewards/mean", 0.5}}), "") << "equal rewards say so themselves";
  EXPECT_THAT(said({{"actor/kl_loss", 1.5}}),
              HasSubstr("the KL divergence from the reference (actor/kl_loss) was above 1 nat a token in 10 iterations "
                        "in a row: try a larger algorithm.beta"));
  EXPECT_THAT(said({{"actor/reward_kl_penalty", 1.5}}), HasSubstr("try a larger algorithm.kl_coefficient"));
  EXPECT_THAT(said({{"reward/errors", 60}}), HasSubstr("rewards failed in 10 iterations in a row"));
  EXPECT_THAT(said({{"reward/errors", 16}, {"critic/rewards/frac_zero_std", 1}}),
              HasSubstr("nothing can be learned from them: rewards failed"));
}

// One prompt in ten may still teach something; equal rewards alone say nothing of how large they are.
TEST(LearningWatch, SaysThatNearlyAllPromptsAreSolved) {
  const auto record = [](double equal, double mean, double least = 0, double most = 1) {
    return record_of({{"critic/rewards/frac_zero_std", equal},
                      {"critic/rewards/mean", mean},
                      {"critic/rewards/max", most},
                      {"critic/rewards/min", least}});
  };
  const std::vector<std::string> said = said_after(10, record(0.94, 0.96));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("nearly every prompt got its largest reward for all of its samples in 10 iterations"));
  EXPECT_TRUE(said_after(20, record(0.8, 0.96)).empty()) << "one prompt in five teaches";
  EXPECT_TRUE(said_after(20, record(0.94, 0.5)).empty()) << "as many have the smallest reward";
  EXPECT_TRUE(said_after(20, record(0.94, -0.96, -1, 0)).empty()) << "they have the smallest one";
  LearningWatch mixed;  // an iteration of which all prompts are solved is one more
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(mixed.add(i % 2 == 0 ? record(1, 1, 1, 1) : record(0.94, 0.96)).empty());
  EXPECT_EQ(mixed.add(record(0.94, 0.96)).size(), 1U);
  LearningWatch all;
  for (int i = 0; i < 9; ++i) all.add(record(1, 1, 1, 1));
  EXPECT_EQ(all.add(record(1, 1, 1, 1)).size(), 1U) << "all rewards were 1";
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(all.add(record(0.94, 0.96)).empty()) << "which says it already";
  LearningWatch later;  // nothing was learned from zeros, and long after it all was
  for (int i = 0; i < 10; ++i) later.add(record(1, 0, 0, 0));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(later.add(record(0.94, 0.96)).empty());
  EXPECT_EQ(later.add(record(0.94, 0.96)).size(), 1U);
  EXPECT_TRUE(said_after(20, record(0.98, -0.01, -1, 0)).empty()) << "one penalty among zeros";
}

// `ppo_kl` is from the policy that drew the samples: large where updates of an iteration are, whatever the reference.
TEST(LearningWatch, TheKlOfUpdatesSaysNothingOfTheReference) {
  EXPECT_TRUE(said_after(20, record_of({{"actor/ppo_kl", 5}, {"actor/kl_loss", 0.5}})).empty());
  EXPECT_TRUE(said_after(20, record_of({{"actor/ppo_kl", 5}})).empty()) << "without a reference";
}

TEST(LearningWatch, SaysNothingOfWhatPassesAndEachOnce) {
  LearningWatch watch;
  const base::MetricsRecord equal = record_of({{"critic/rewards/frac_zero_std", 1}});
  for (int i = 0; i < 9; ++i) watch.add(equal);
  watch.add(record_of({{"critic/rewards/frac_zero_std", 0.9}}));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(watch.add(equal).empty());
  EXPECT_EQ(watch.add(equal).size(), 1U);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(watch.add(equal).empty());
  EXPECT_EQ(watch.warnings().size(), 1U);
}

TEST(LearningWatch, SaysThatALossHasRisen) {
  LearningWatch watch;
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(watch.add(record_of({{"actor/loss", 2}})).empty());
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(watch.add(record_of({{"actor/loss", 3.5}})).empty());
  EXPECT_THAT(watch.add(record_of({{"actor/loss", 3.5}})).at(0), HasSubstr("has risen from 2 to 3.05"));
  LearningWatch from_the_start;
  from_the_start.add(record_of({{"actor/loss", 2}}));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(from_the_start.add(record_of({{"actor/loss", 30}})).empty());
  EXPECT_EQ(from_the_start.add(record_of({{"actor/loss", 30}})).size(), 1U);
  LearningWatch policy;  // of which the loss says nothing
  for (int i = 0; i < 40; ++i)
    EXPECT_TRUE(policy.add(record_of({{"actor/loss", 0.01 * i}, {"critic/rewards/mean", 0}})).empty());
}

// Gives what a run with these losses ends with.
std::string diverged(const std::vector<double>& losses) {
  LearningWatch watch;
  for (const double loss : losses) watch.add(record_of({{"actor/loss", loss}}));
  return watch.diverged();
}

TEST(LearningWatch, ARunThatHasDivergedSaysSoAtItsEnd) {
  std::vector<double> losses(12, 2);
  EXPECT_EQ(diverged(losses), "");
  losses.insert(losses.end(), 9, 30);
  EXPECT_THAT(diverged(losses), HasSubstr("has risen from 2 to 27.2 (the mean of 10 iterations); try a lower train."));
  losses.insert(losses.end(), 9, 2);
  EXPECT_EQ(diverged(losses), "") << "it has come back";
  losses.insert(losses.end(), 10, 30);
  EXPECT_THAT(diverged(losses), HasSubstr("has risen from 2 to 30")) << "said once, true again";
  EXPECT_THAT(diverged({2, 2.1, 5, 9, 8, 7.5, 7.6}), HasSubstr("from 2 to 7.7 (the mean of 3 iterations)"));
  EXPECT_EQ(diverged({2, 2.1, 5, 9, 8}), "") << "two numbers are no course";
  EXPECT_EQ(diverged({2, 5, 3, 1.9, 1.8, 1.9, 1.8}), "");
}

// Where an update has one row, the first loss says little about the others.
TEST(LearningWatch, LossesThatDifferAsMuchAsTheyHaveRisenSayNothingAtTheEnd) {
  std::vector<double> losses = {0.5};
  for (int i = 0; i < 20; ++i) losses.push_back(i % 2 == 0 ? 0.4 : 1.6);
  EXPECT_EQ(diverged(losses), "");
}

// The loss of a value model may grow to what rewards explain.
TEST(LearningWatch, SaysThatAValueModelDiverges) {
  const auto record = [](double loss) {
    return record_of(
        {{"critic/rewards/mean", 0}, {"critic/rewards/max", 1}, {"critic/rewards/min", -2}, {"critic/vf_loss", loss}});
  };
  LearningWatch watch;
  watch.add(record(0.1));
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(watch.add(record(4)).empty());
  std::vector<std::string> said;
  for (int i = 0; i < 10; ++i)
    for (const std::string& warning : watch.add(record(40))) said.push_back(warning);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("the value model's loss has risen from 0.1 to"));
}

TEST(LearningWatch, GoesOnAsItWas) {
  LearningWatch watch;
  const base::MetricsRecord equal = record_of({{"critic/rewards/frac_zero_std", 1}, {"actor/loss", 2}});
  for (int i = 0; i < 9; ++i) watch.add(equal);
  LearningWatch again = nlohmann::json::parse(nlohmann::json(watch).dump());
  EXPECT_EQ(again.add(equal).size(), 1U);
  for (int i = 0; i < 10; ++i) again.add(record_of({{"actor/loss", 30}}));
  EXPECT_NE(again.diverged(), "");
  EXPECT_EQ(nlohmann::json(again).get<LearningWatch>().diverged(), again.diverged());
  EXPECT_EQ(nlohmann::json(again).get<LearningWatch>().warnings(), again.warnings());
}

}  // namespace
}  // namespace collimate::recipe
