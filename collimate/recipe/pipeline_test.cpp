#include "collimate/recipe/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "collimate/text/dataset.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_task.h"

namespace collimate::recipe {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string shares_error(const std::string& text) {
  return base::message_of([&] { split_shares(text, "--data-split"); });
}

TEST(PipelineSplit, SharesAreThreeNumbersThatAddUpToOne) {
  EXPECT_THAT(split_shares("2,4,4", ""), ElementsAre(0.2, 0.4, 0.4));
  EXPECT_THAT(split_shares("10,0,0", ""), ElementsAre(1, 0, 0));
  EXPECT_THAT(split_shares("0.5,0.25,0.25", ""), ElementsAre(0.5, 0.25, 0.25));
  for (const char* wrong :
       {"", "2,4", "2,4,4,1", "2,,4", "-1,4,4", "0,0,0", "a,b,c", "2;4;4", "2,4,4,", "inf,1,1", "nan,1,1"})
    EXPECT_THAT(shares_error(wrong), AllOf(HasSubstr("[--data-split] expected three numbers"), HasSubstr("try 2,4,4")))
        << wrong;
}

TEST(PipelineSplit, EveryRowHasOneStepInTheSharesAskedFor) {
  const auto count = [](const std::vector<size_t>& steps, size_t step) { return std::ranges::count(steps, step); };
  const std::vector<size_t> steps = split_rows(1000, split_shares("2,4,4", ""), 7);
  EXPECT_EQ(count(steps, 0), 200);
  EXPECT_EQ(count(steps, 1), 400);
  EXPECT_EQ(count(steps, 2), 400);
  EXPECT_EQ(steps, split_rows(1000, split_shares("0.2,0.4,0.4", ""), 7));
  EXPECT_NE(steps, split_rows(1000, split_shares("2,4,4", ""), 8));
  EXPECT_FALSE(std::ranges::is_sorted(steps)) << "rows are drawn, not cut in the order of the file";
  const std::vector<size_t> few = split_rows(7, split_shares("1,1,1", ""), 1);
  for (size_t step : {0, 1, 2}) EXPECT_GE(count(few, step), 2) << step;
  EXPECT_EQ(count(split_rows(5, split_shares("1,0,0", ""), 3), 0), 5);
}

class PipelineFiles : public testing::Test {
 protected:
  PipelineFiles() {
    test::write_small_task(scratch_.path());
    request_ = {.sources = {{.path = scratch_ / "pairs.jsonl"}}, .shares = "2,4,4", .seed = 5};
  }
  std::string directory() const { return scratch_ / "out/data"; }
  PipelineSplit split(bool may_change = false) const { return {request_, directory(), may_change}; }

  const test::Scratch scratch_{"pipeline-split"};
  SplitRequest request_;
};

TEST_F(PipelineFiles, StepsReadDisjointRowsOfOneFile) {
  const PipelineSplit made = split();
  std::set<std::string> prompts;
  size_t rows = 0;
  for (size_t step = 0; step < kPipelineSteps; ++step) {
    const text::Dataset data = text::Dataset::read({{.path = made.file(step)}});
    EXPECT_EQ(data.size(), made.rows(step));
    for (const text::Example& example : data.examples()) prompts.insert(std::get<std::string>(example.prompt)), ++rows;
    EXPECT_EQ(data.example(0).completion.has_value(), step == 0);
    EXPECT_EQ(data.example(0).chosen.has_value(), step == 1);
  }
  EXPECT_EQ(rows, 40U);
  EXPECT_EQ(prompts.size(), 40U) << "each prompt of the small task is there once";
  EXPECT_EQ(made.rows(0), 8);
}

TEST_F(PipelineFiles, ASplitIsKeptAndNotMadeAgain) {
  const std::string first = test::read_text(split().file(1));
  const PipelineSplit again = split();
  EXPECT_EQ(again.rows(1), 16);
  EXPECT_EQ(test::read_text(again.file(1)), first);
  std::filesystem::remove(scratch_ / "pairs.jsonl");
  EXPECT_EQ(base::message_of([&] { split(); }), "") << "the rows are kept: their source may go";
}

TEST_F(PipelineFiles, AnotherSplitIsNamedOrMadeWhereNoStepHasBegun) {
  const std::string first = test::read_text(split().file(1));
  request_.seed = 6;
  request_.shares = "1,1,1";
  EXPECT_THAT(base::message_of([&] { split(); }),
              AllOf(HasSubstr("data_split: \"2,4,4\" -> \"1,1,1\""), HasSubstr("seed: 5 -> 6"), HasSubstr("--output")));
  split(/*may_change=*/true);
  EXPECT_NE(test::read_text(split().file(1)), first);
}

TEST_F(PipelineFiles, ChangedFilesAreNamed) {
  const std::string kept = split().file(2);
  const std::string pairs = test::read_text(scratch_ / "pairs.jsonl");
  test::write_text(scratch_ / "pairs.jsonl", pairs + pairs);
  EXPECT_THAT(base::message_of([&] { split(); }), HasSubstr("data.0.file.bytes: "));
  test::write_text(scratch_ / "pairs.jsonl", pairs);
  test::write_text(kept, "{}\n");
  EXPECT_THAT(base::message_of([&] { split(); }),
              HasSubstr("[" + kept + "] expected the rows that the pipeline began with, got others"));
  split(/*may_change=*/true);
  EXPECT_NE(test::read_text(kept), "{}\n");
}

TEST_F(PipelineFiles, AFileOfAnotherFormIsRefused) {
  const std::string path = directory() + "/split.json";
  split();
  nlohmann::json cut = nlohmann::json::parse(test::read_text(path));
  cut["parts"].erase(2);
  const std::vector<std::string> others = {R"({"parts": []})", "[]",
                                           R"({"request": {"data": [1]}, "parts": [{}, {}, {}]})", cut.dump()};
  for (const std::string& text : others) {
    test::write_text(path, text);
    EXPECT_THAT(base::message_of([&] { split(/*may_change=*/true); }),
                HasSubstr("[" + path +
                          "] expected what a pipeline writes of its split: {request, rows, parts}, got JSON of "
                          "another form; try restoring the file, or another --output"))
        << text;
  }
  test::write_text(path, "{\"request\"");
  EXPECT_THAT(base::message_of([&] { split(); }), HasSubstr("[" + path));
}

TEST_F(PipelineFiles, MessagesToolsAndColumnsOfTheDatasOwnGoOn) {
  test::write_text(
      scratch_ / "pairs.jsonl",
      R"({"prompt": [{"role": "user", "content": "1="}], "chosen": [{"role": "assistant", "content": "1"}],)"
      R"( "rejected": [{"role": "assistant", "content": "2"}], "margin": 0.5,)"
      R"( "tools": [{"type": "function", "function": {"name": "add"}}]})"
      "\n");
  request_.shares = "0,1,0";
  EXPECT_THAT(base::message_of([&] { split(); }), HasSubstr("none for 1-sft"));
  std::string rows;
  for (int i = 0; i < 3; ++i) rows += test::read_text(scratch_ / "pairs.jsonl");
  test::write_text(scratch_ / "pairs.jsonl", rows);
  request_.shares = "1,1,1";
  const PipelineSplit made = split();
  const text::Dataset before = text::Dataset::read(request_.sources);
  const text::Dataset pairs = text::Dataset::read({{.path = made.file(1)}});
  EXPECT_EQ(pairs.example(0).prompt, before.example(0).prompt);
  EXPECT_EQ(pairs.example(0).chosen, before.example(0).chosen);
  EXPECT_EQ(pairs.example(0).rejected, before.example(0).rejected);
  EXPECT_EQ(pairs.example(0).extra, before.example(0).extra);
  const text::Dataset answers = text::Dataset::read({{.path = made.file(0)}});
  EXPECT_EQ(answers.example(0).prompt, before.example(0).prompt);
  EXPECT_EQ(answers.example(0).completion, before.example(0).chosen);
}

TEST_F(PipelineFiles, RowsThatAreNoPairsAreRefused) {
  request_.sources = {{.path = scratch_ / "demonstrations.jsonl"}};
  EXPECT_THAT(base::message_of([&] { split(); }), HasSubstr("expected chosen, which a pipeline needs"));
}

class PipelineConfigs : public testing::Test {
 protected:
  PipelineConfigs() { test::write_small_task(scratch_.path()); }

  Pipeline pipeline(std::vector<std::string> more = {}) const {
    std::vector<std::string> sets = {"actor_model=" + (scratch_ / "start"), "reward_model=" + (scratch_ / "start"),
                                     "data=" + (scratch_ / "pairs.jsonl")};
    sets.insert(sets.end(), more.begin(), more.end());
    return {"", sets, scratch_ / "out"};
  }
  std::string error_of(const std::vector<std::string>& more) const {
    return base::message_of([&] {
      const Pipeline made = pipeline(more);
      for (size_t step = 0; step < kPipelineSteps; ++step) made.config(step);
    });
  }

  const test::Scratch scratch_{"pipeline-configs"};
};

TEST_F(PipelineConfigs, EachStepGoesOnWithWhatTheStepsBeforeItLeave) {
  const Pipeline made = pipeline({"seed=9"});
  const Config sft = made.config(0), reward = made.config(1), ppo = made.config(2);
  EXPECT_EQ(sft.recipe.get(), "sft");
  EXPECT_EQ(sft.model("policy").path.get(), scratch_ / "start");
  EXPECT_EQ(reward.recipe.get(), "reward");
  EXPECT_EQ(ppo.recipe.get(), "ppo");
  EXPECT_EQ(ppo.model("policy").path.get(), scratch_ / "out/1-sft/model");
  EXPECT_EQ(ppo.model("reference").path.get(), scratch_ / "out/1-sft/model");
  for (const char* role : {"value", "reward"}) EXPECT_EQ(ppo.model(role).path.get(), scratch_ / "out/2-reward/model");
  for (const Config* config : {&sft, &reward, &ppo}) {
    EXPECT_EQ(config->run.seed, 9);
    EXPECT_EQ(config->data.val_size, 0.1);
  }
  EXPECT_EQ(ppo.algorithm.kl_coefficient, 0.1) << "DeepSpeed-Chat's constants";
  EXPECT_EQ(ppo.rollout.prompt_tokens + ppo.rollout.completion_tokens, 32) << "all positions of the model";
  EXPECT_EQ(load_source({base::parse_config(made.yaml(2), "3-ppo.yaml").root}, "3-ppo.yaml").rollout.prompt_tokens,
            ppo.rollout.prompt_tokens);
}

TEST_F(PipelineConfigs, KeysOfAStepWinOverThoseOfAllAndBothOverTheDefaults) {
  const Pipeline made = pipeline({"all.run.seed=3", "all.run.threads=1", "reward.run.seed=4", "sft.data.val_size=0"});
  EXPECT_EQ(made.config(0).run.seed, 3);
  EXPECT_EQ(made.config(1).run.seed, 4);
  EXPECT_EQ(made.config(2).run.threads, 1);
  EXPECT_EQ(made.config(0).data.val_size, 0);
  EXPECT_EQ(made.config(1).data.val_size, 0.1);
}

TEST_F(PipelineConfigs, FurtherRowsForSftStandBesideItsShare) {
  const Pipeline made = pipeline({"sft_data=" + (scratch_ / "demonstrations.jsonl")});
  EXPECT_EQ(made.config(0).data.train->size(), 2U);
  EXPECT_EQ(made.config(1).data.train->size(), 1U);
}

TEST_F(PipelineConfigs, WrongInputIsNamedWithItsStep) {
  EXPECT_THAT(error_of({"ppo.train.learning_rat=1"}), AllOf(HasSubstr("3-ppo: "), HasSubstr("learning_rat")));
  EXPECT_THAT(error_of({"ppo.train.learning_rate=fast"}), HasSubstr("3-ppo: [--set ppo.train.learning_rate"));
  EXPECT_THAT(error_of({"sfd.run.seed=1"}), HasSubstr("sfd"));
  EXPECT_THAT(error_of({"deployment_type=multi_node"}), HasSubstr("single_gpu or single_node"));
  EXPECT_THAT(error_of({"actor_model="}), HasSubstr("[--actor-model] expected a model's directory"));
  EXPECT_THAT(error_of({"reward_model=/nowhere"}), HasSubstr("[--reward-model] expected a model directory"));
  EXPECT_THAT(error_of({"data=null"}), HasSubstr("[--data]"));
  EXPECT_THAT(error_of({"data={path: a.jsonl, weight: 2}"}), HasSubstr("each row is in one step"));
  EXPECT_THAT(error_of({"data_split='1,2'"}), HasSubstr("three numbers"));
}

}  // namespace
}  // namespace collimate::recipe
