#include "collimate/recipe/page_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/base/error_of.h"

namespace collimate::recipe {
namespace {

using testing::HasSubstr;

// A flow of four models, of which `body` is what it does.
std::string error_of_page(const std::function<void(graph::Value)>& body, Plan plan = {}) {
  return base::message_of([&] {
    plan.graph = graph::trace(body, {{"prompts", {"uid", "ids"}}}, "mine");
    check_page("mine", plan);
  });
}

const graph::ModelHandle kPolicy(
    "policy", {{.name = "generate", .needs = {"ids"}, .makes = {"log_probs", "finish", "prompt_tokens"}}});
const graph::ModelHandle kJudge("judge", {{.name = "score", .needs = {"log_probs"}, .makes = {"reward"}},
                                          {.name = "rank", .needs = {"reward"}, .makes = {"order"}}});
const graph::ModelHandle kCounter("counter", {{.name = "count", .needs = {"reward"}}});
const graph::ModelHandle kTrainer(
    "trainer", {{.name = "train", .kind = graph::Kind::kTrain, .needs = {"reward"}, .writes_weights = true}});

Plan trained() {
  Plan plan;
  plan.trained = "trainer";
  return plan;
}

TEST(PageChecks, AGraphInWhichAllIsUsedIsFine) {
  EXPECT_EQ(error_of_page(
                [](graph::Value prompts) {
                  const graph::Value scored = kJudge("score", kPolicy(prompts));
                  kCounter(scored);  // makes nothing: it is there for its metrics
                  kTrainer.train(scored);
                },
                trained()),
            "");
}

TEST(PageChecks, AValueThatNothingReadsIsNamed) {
  EXPECT_EQ(error_of_page(
                [](graph::Value prompts) {
                  const graph::Value scored = kJudge("score", kPolicy(prompts));
                  kJudge("rank", scored);
                  kTrainer.train(scored);
                },
                trained()),
            "[recipe mine] expected a node that reads what judge.rank makes (order), got none; try giving it to a call "
            "that trains, or leaving the call out");
}

TEST(PageChecks, SamplesAndWhatIsWaitedForAreUsed) {
  Plan plan = trained();
  plan.samples_node = "judge.rank";
  const auto body = [](graph::Value prompts) {
    const graph::Value scored = kJudge("score", kPolicy(prompts));
    kJudge("rank", scored);
    kTrainer.train(scored);
  };
  EXPECT_EQ(error_of_page(body, plan), "");
  EXPECT_EQ(error_of_page(
                [](graph::Value prompts) {
                  const graph::Value scored = kJudge("score", kPolicy(prompts));
                  kTrainer.train(scored, graph::after(kJudge("rank", scored)));
                },
                trained()),
            "");
}

TEST(PageChecks, SamplesHaveRewards) {
  Plan plan = trained();
  plan.samples_node = "policy.generate";
  EXPECT_EQ(error_of_page([](graph::Value prompts) { kTrainer.train(kJudge("score", kPolicy(prompts))); }, plan),
            "[recipe mine] expected samples of an iteration with a column 'reward', got node policy.generate, which "
            "carries finish, ids, log_probs, prompt_tokens, uid; try training on completions of a generator that "
            "rewards have judged");
}

TEST(PageChecks, AnInputThatNothingReadsIsNamed) {
  Plan plan = trained();
  plan.graph =
      graph::trace([](graph::Value prompts, graph::Value) { kTrainer.train(kJudge("score", kPolicy(prompts))); },
                   {{"prompts", {"uid", "ids"}}, {"texts", {"uid"}}}, "mine");
  EXPECT_EQ(
      base::message_of([&] { check_page("mine", plan); }),
      "[recipe mine] expected a node that reads the input texts, got none; try giving it to a call, or leaving it "
      "out");
}

TEST(PageChecks, APlanSpeaksOfWhatIsThere) {
  const auto body = [](graph::Value prompts) { kTrainer.train(kJudge("score", kPolicy(prompts))); };
  Plan plan = trained();
  plan.samples_node = "judge.scores";
  EXPECT_EQ(error_of_page(body, plan),
            "[recipe mine] expected samples_node to be a node of its graph, one of policy.generate, judge.score, "
            "trainer.train, got 'judge.scores'; try 'judge.score'");
  plan = Plan();
  plan.trained = "trainers";
  EXPECT_THAT(error_of_page(body, plan), HasSubstr("got 'trainers'; try 'trainer'"));
}

TEST(PageChecks, GraphsSayWhatTheirTracingFinds) {
  EXPECT_EQ(error_of_page([](graph::Value prompts) { kTrainer.train(kPolicy(prompts)); }, trained()),
            "[graph.trainer.train] expected column 'reward' from its inputs policy.generate, got none of that name; "
            "they carry finish, ids, log_probs, prompt_tokens, uid");
  EXPECT_EQ(error_of_page([](graph::Value prompts) { kTrainer.train(kJudge("scor", kPolicy(prompts))); }),
            "[graph.judge.scor] expected a function of judge out of score, rank, got 'scor'; try 'score'");
  Plan plan = trained();
  plan.graph = graph::trace([](graph::Value prompts) { kTrainer.train(kJudge("score", kPolicy(prompts))); },
                            {{"prompts", {"uid", "ids"}}}, "mine");
  plan.graph.nodes[0].after = {"judge.score"};
  EXPECT_EQ(
      base::message_of([&] { check_page("mine", plan); }),
      "[graph] expected nodes that can be put in order, got a cycle among or before policy.generate, judge.score, "
      "trainer.train; try removing one of the inputs or control dependencies between them");
}

}  // namespace
}  // namespace collimate::recipe
