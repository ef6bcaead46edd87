#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "collimate/batch/standard_keys.h"
#include "collimate/generate/engine.h"
#include "collimate/host/core_pool.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/registry.h"
#include "tests/e2e/recipe_runs.h"
#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

// Completes a prompt greedily with the model that a run has left.
std::vector<int32_t> complete(const std::string& directory, const std::string& head = "lm") {
  host::CorePool pool(1);
  const tensor::Exec exec{&pool};
  model::Model model(model::load_huggingface(directory, head, {}, exec), exec);
  const std::vector<std::vector<int32_t>> prompts = {{5, 3, 4, 12}};
  generate::SamplingParams sampling;
  sampling.max_tokens = 4;
  sampling.temperature = 0;
  generate::EngineOptions options;
  options.service.exec = exec;
  return generate::generate_all(model, prompts, sampling, options).at(0).tokens;
}

class Recipes : public RecipeRuns {
 public:
  Recipes() : RecipeRuns("recipes") {}
};

TEST_F(Recipes, EveryOneOfTheListTrains) {
  for (const recipe::RecipeEntry& entry : recipe::recipes()) {
    const Metrics metrics = train(entry.name);
    expect_every_step_once(metrics, 1, 3);
    EXPECT_NE(number(metrics.back(), "actor/grad_norm"), 0.0) << entry.name;
  }
}

TEST_F(Recipes, Sft) {
  const Metrics metrics = train("sft", {"train.learning_rate=1e-2"});
  expect_every_step_once(metrics, 1, 3);
  expect_loss_falls(metrics);
  EXPECT_FALSE(complete(output_ + "/model").empty());
}

TEST_F(Recipes, SftTrainsOnTheTokensThatItIsToldTo) {
  const nlohmann::json chat = {{"messages",
                                {{{"role", "user"}, {"content", "31="}},
                                 {{"role", "assistant"}, {"content", "13"}},
                                 {{"role", "user"}, {"content", "20="}},
                                 {{"role", "assistant"}, {"content", "02"}}}}};
  write_text(scratch_ / "demonstrations.jsonl", R"({"prompt": "31=", "completion": "13"})");
  write_text(scratch_ / "chat.jsonl", chat.dump());
  using Mask = std::vector<uint8_t>;
  const auto trained = [&](const std::string& file, const std::string& on) {
    write_text(scratch_ / "run.yaml", small_config("sft", scratch_.path()));
    const recipe::Config config =
        recipe::load(scratch_ / "run.yaml",
                     {"data.train=" + (scratch_ / file), "data.train_on=" + on, "models.policy.chat_template=plain"});
    const recipe::RunData data = recipe::read_data(config, recipe::make_plan(config, recipe::module_registry()));
    const Batch row = data.train->rows(0, 1, 0, 1);
    const auto mask = row.row(batch::kTrainable, 0);
    return Mask(mask.begin(), mask.end());
  };
  // The answer with its end; then the prompt too, but for the first token, which nothing predicts.
  EXPECT_EQ(trained("demonstrations.jsonl", "completion"), (Mask{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(trained("demonstrations.jsonl", "all_tokens"), (Mask{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(trained("chat.jsonl", "completion"), (Mask{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  // A turn that is trained on ends with its end too.
  EXPECT_EQ(trained("chat.jsonl", "assistant_turns"), (Mask{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(trained("chat.jsonl", "all_tokens"), (Mask{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  train("sft", {"data.train_on=all_tokens"});
}

TEST_F(Recipes, EvaluationComesBeforeTheFirstStepAndAfterTheLast) {
  const Metrics metrics = train("sft", {"data.eval=" + (scratch_ / "demonstrations.jsonl"), "run.evaluate_every=2"});
  expect_every_step_once(metrics, 0, 3);
  for (size_t step : {0, 2, 3}) EXPECT_TRUE(metrics[step].contains("val/loss")) << "step " << step;
  EXPECT_FALSE(metrics[1].contains("val/loss"));
  EXPECT_LT(number(metrics[3], "val/loss"), number(metrics[0], "val/loss"));
}

TEST_F(Recipes, RewardModelAndDpoOnPairs) {
  const Metrics reward = train("reward", {"train.learning_rate=1e-2"});
  expect_every_step_once(reward, 1, 3);
  expect_loss_falls(reward);
  const Metrics dpo = train("dpo", {"train.learning_rate=1e-2", "algorithm.beta=0.1"});
  expect_every_step_once(dpo, 1, 3);
  EXPECT_NEAR(number(dpo.front(), "actor/loss"), std::log(2.0), 1e-5);  // policy and reference are equal still
  expect_loss_falls(dpo);
  EXPECT_FALSE(complete(output_ + "/model").empty());
}

// The scores of a new head are 0: what the first loss is beside log 2 comes from margins alone.
TEST_F(Recipes, ARewardModelReadsTheMarginsOfItsPairs) {
  const std::vector<std::string> whole = {"run.iterations=1", "train.samples_per_update=80"};  // all 40 pairs
  EXPECT_NEAR(number(train("reward", whole).front(), "actor/loss"), std::log(2.0), 1e-5);
  std::string pairs;
  double loss = 0;
  for (const std::string& line : lines_of(scratch_ / "pairs.jsonl")) {
    auto pair = nlohmann::json::parse(line);
    pair["margin"] = static_cast<double>(pairs.size() % 7) / 2 - 1;
    loss += std::log1p(std::exp(pair["margin"].get<double>())) / 40;
    pairs += pair.dump() + "\n";
  }
  write_text(scratch_ / "pairs.jsonl", pairs);
  EXPECT_GT(std::abs(loss - std::log(2.0)), 0.05);
  EXPECT_NEAR(number(train("reward", whole).front(), "actor/loss"), loss, 1e-5);
  // A recipe that has no margins leaves the column alone.
  write_text(scratch_ / "pairs.jsonl",
             std::regex_replace(pairs, std::regex("\"margin\":[^,]*,"), "\"margin\":\"wide\","));
  EXPECT_NEAR(number(train("dpo", {"algorithm.beta=0.1"}).front(), "actor/loss"), std::log(2.0), 1e-5);
}

TEST_F(Recipes, RewardModelIsEvaluatedOnPairs) {
  EXPECT_TRUE(train("reward", {"data.eval=" + (scratch_ / "pairs.jsonl")}).back().contains("val/accuracy"));
}

TEST_F(Recipes, DpoByLossesWithoutAReference) {
  for (const char* loss : {"orpo", "simpo", "cpo"}) {
    const Metrics metrics =
        train("dpo", {"train.learning_rate=1e-2", "run.iterations=12", std::string("algorithm.loss_type=") + loss,
                      "data.eval=" + (scratch_ / "pairs.jsonl")});
    EXPECT_LT(number(metrics.back(), "actor/loss"), number(metrics[1], "actor/loss")) << loss;
    EXPECT_GT(number(metrics.back(), "val/accuracy"), number(metrics.front(), "val/accuracy")) << loss;
  }
}

TEST_F(Recipes, RolloutsEndAtEveryStopIdThatTheModelNames) {
  write_text(scratch_ / "start/generation_config.json", R"({"eos_token_id": [1, 2]})");  // <eos> and "0"
  train("grpo", {"run.iterations=1"});
  int ended = 0;
  for (const std::string& line : lines_of(output_ + "/samples/step-000001.jsonl")) {
    const std::string completion = nlohmann::json::parse(line).at("completion");
    const size_t zero = completion.find('0');
    EXPECT_TRUE(zero == std::string::npos || zero + 1 == completion.size()) << completion;
    ended += zero != std::string::npos;
  }
  EXPECT_GT(ended, 0);
}

TEST_F(Recipes, TheModelOfARunKeepsTheStopIdsItBeganWith) {
  const std::string file = R"({"eos_token_id": [1, 2]})";
  write_text(scratch_ / "start/generation_config.json", file);
  train("sft", {"run.iterations=1"});
  EXPECT_EQ(read_text(output_ + "/model/generation_config.json"), file);
  EXPECT_EQ(text::load_tokenizer(output_ + "/model")->info().stop_ids, (std::vector<int32_t>{1, 2}));
}

TEST_F(Recipes, EvaluationDrawsAsItsOwnSectionSays) {
  const std::string eval = "data.eval=" + (scratch_ / "held_out.jsonl");
  const auto held_out = [&](const std::vector<std::string>& sets) {
    std::vector<std::string> all = {eval, "run.iterations=1"};
    all.insert(all.end(), sets.begin(), sets.end());
    return number(train("grpo", all).front(), "val/response_length/mean");
  };
  const double greedy = held_out({});
  EXPECT_EQ(held_out({"evaluation.temperature=1", "evaluation.top_k=1"}), greedy);
  EXPECT_NE(held_out({"evaluation.temperature=1"}), greedy);
}

TEST_F(Recipes, PenaltiesAndStopStringsLeaveLogProbsAsTheyAre) {
  for (const nlohmann::json& line :
       train("grpo", {"rollout.stop=['11', '3']", "rollout.presence_penalty=1.5", "rollout.repetition_penalty=1.3",
                      "rollout.frequency_penalty=-0.5", "rollout.logit_bias={3: 2}", "rollout.min_tokens=2"})) {
    EXPECT_EQ(number(line, "mismatch/logprob_abs_max"), 0.0);
    EXPECT_NEAR(number(line, "mismatch/tokens_compared"), completion_tokens(line), 1e-6);
  }
  const auto stops = [](const std::string& text) { return text.ends_with("11") || text.ends_with("3"); };
  int stopped = 0;
  for (const std::string& line : lines_of(output_ + "/samples/step-000001.jsonl")) {
    const nlohmann::json sample = nlohmann::json::parse(line);
    const std::string completion = sample.at("completion");
    EXPECT_GE(completion.size(), 2U);
    for (size_t tokens = 3; tokens < completion.size(); ++tokens)  // beyond min_tokens
      EXPECT_FALSE(stops(completion.substr(0, tokens))) << completion;
    if (!stops(completion)) continue;
    EXPECT_EQ(sample.at("finish"), "stop") << completion;
    ++stopped;
  }
  EXPECT_GT(stopped, 3);
}

// Guesses are made where fewer than 16 samples decode, and held here by a bias that makes them repeat themselves. The
// model that guesses is the one that the first run made.
TEST_F(Recipes, GuessedTokensChangeNoBit) {
  const std::vector<std::string> plain = {"rollout.prompts_per_iteration=2", "rollout.completion_tokens=20",
                                          "rollout.logit_bias={3: 3}"};
  EXPECT_FALSE(train("grpo", plain).front().contains("rollout/accepted_tokens"));
  const std::string without = output_;
  for (const std::string guesser : {"ngram", "draft"}) {
    std::vector<std::string> guessing = plain;
    guessing.emplace_back("rollout.speculation=" + guesser);
    if (guesser == "draft") guessing.emplace_back("rollout.draft_model=" + without + "/model");
    double accepted = 0;
    for (const nlohmann::json& line : train("grpo", guessing)) {
      accepted += number(line, "rollout/accepted_tokens");
      EXPECT_LE(number(line, "rollout/accepted_tokens"), number(line, "rollout/proposed_tokens"));
      EXPECT_EQ(number(line, "mismatch/logprob_abs_max"), 0.0);
    }
    EXPECT_GT(accepted, 0.0) << guesser;
    EXPECT_TRUE(model_bytes(output_) == model_bytes(without)) << guesser;
    for (int step = 1; step <= 3; ++step) {
      const std::string samples = fmt::format("/samples/step-{:06}.jsonl", step);
      EXPECT_EQ(read_text(output_ + samples), read_text(without + samples)) << guesser;
    }
  }
}

TEST_F(Recipes, GrpoWithReference) {
  const Metrics metrics = train("grpo", {"algorithm.beta=0.04"});
  expect_every_step_once(metrics, 1, 3);
  for (const nlohmann::json& line : metrics) expect_no_mismatch(line);
  EXPECT_EQ(number(metrics.front(), "actor/kl_loss"), 0.0);
  EXPECT_GT(number(metrics.back(), "actor/kl_loss"), 0.0);
  for (int step = 1; step <= 3; ++step)
    EXPECT_EQ(lines_of(fmt::format("{}/samples/step-{:06}.jsonl", output_, step)).size(), 16U);
  EXPECT_FALSE(complete(output_ + "/model").empty());
}

TEST_F(Recipes, TokensOfUpdatesAfterTheFirstAreOfAnotherVersion) {
  for (const nlohmann::json& line : train("grpo", {"train.samples_per_update=8"})) {
    EXPECT_EQ(number(line, "actor/updates"), 2.0);
    EXPECT_EQ(number(line, "mismatch/logprob_abs_max"), 0.0);
    EXPECT_GT(number(line, "mismatch/tokens_compared"), 0.0);
    EXPECT_GT(number(line, "mismatch/tokens_other_version"), 0.0);
    EXPECT_NEAR(number(line, "mismatch/tokens_compared") + number(line, "mismatch/tokens_other_version"),
                completion_tokens(line), 1e-6);
  }
}

// This holds also where most tokens are trained by weights that did not draw them, and each twice.
TEST_F(Recipes, EveryTokenIsComparedBeforeTheFirstUpdate) {
  for (const char* recipe : {"grpo", "ppo"}) {
    const std::vector<std::string> sets = {"train.samples_per_update=8", "train.ppo_epochs=2"};
    const Metrics metrics = train(recipe, sets);
    nlohmann::json before = metrics.front();
    for (const nlohmann::json& line : metrics) {
      EXPECT_EQ(number(line, "actor/updates"), 4.0);
      EXPECT_EQ(number(line, "sync/version"), number(before, "sync/version") + (line == before ? 0.0 : 4.0));
      EXPECT_EQ(number(line, "staleness/max"), 0.0);
      before = line;
      EXPECT_EQ(number(line, "mismatch/logprob_abs_max"), 0.0);
      EXPECT_GT(number(line, "mismatch/tokens_checked"), 0.0);
      EXPECT_NEAR(number(line, "mismatch/tokens_compared") + number(line, "mismatch/tokens_checked"),
                  completion_tokens(line), 1e-6);
    }
  }
  for (const nlohmann::json& line : train("grpo", {"train.samples_per_update=8", "train.mismatch_check=false"}))
    EXPECT_FALSE(line.contains("mismatch/tokens_checked"));
}

// Two prompts, each twice an epoch, which is an iteration: four groups of samples.
TEST_F(Recipes, APromptOfWeightThreeIsThreePromptsOfAnEpoch) {
  write_text(scratch_ / "thrice.jsonl", "{\"prompt\": \"321=\", \"ground_truth\": \"123\"}");
  write_text(scratch_ / "once.jsonl", "{\"prompt\": \"540=\", \"ground_truth\": \"045\"}");
  const std::string data =
      fmt::format("data.train=[{{path: {}, weight: 3}}, {}]", (scratch_ / "thrice.jsonl"), (scratch_ / "once.jsonl"));
  expect_every_step_once(train("grpo", {data}), 1, 3);
  std::set<int64_t> uids;
  std::map<std::string, std::vector<std::string>> drawn;  // by prompt
  for (const std::string& line : lines_of(output_ + "/samples/step-000001.jsonl")) {
    const auto sample = nlohmann::json::parse(line);
    uids.insert(sample.at("uid").get<int64_t>());
    drawn[sample.at("prompt")].push_back(sample.at("completion"));
  }
  EXPECT_EQ(uids.size(), 16U);
  ASSERT_EQ(drawn.size(), 2U);
  const std::vector<std::string>& thrice = drawn.at("321=");
  ASSERT_EQ(thrice.size(), 12U);
  EXPECT_GT(std::set<std::string>(thrice.begin(), thrice.end()).size(), 4U) << "a copy draws the other's samples";
}

// A pair of weight 3 beside one of weight 1 gives the gradient of a file that has it three times.
TEST_F(Recipes, EachCopyOfAPairIsTrained) {
  const std::string often = R"({"prompt": "321=", "chosen": "123", "rejected": "3219"})";
  const std::string once = R"({"prompt": "540=", "chosen": "045", "rejected": "99"})";
  write_text(scratch_ / "often.jsonl", often);
  write_text(scratch_ / "once.jsonl", once);
  write_text(scratch_ / "copies.jsonl", fmt::format("{0}\n{0}\n{0}\n{1}", often, once));
  const auto gradient = [&](const std::string& data, int rows) {
    return number(train("dpo", {"algorithm.beta=0.1", "run.iterations=1", "data.train=" + data,
                                fmt::format("train.samples_per_update={}", rows)})
                      .at(0),
                  "actor/grad_norm");
  };
  const std::string path = "path: " + (scratch_ / "often.jsonl"), other = scratch_ / "once.jsonl";
  const double copies = gradient(scratch_ / "copies.jsonl", 8);
  EXPECT_NEAR(gradient("[{" + path + ", weight: 3}, " + other + "]", 8), copies, 1e-4 * copies);
  EXPECT_GT(std::abs(gradient("[{" + path + "}, " + other + "]", 4) - copies), 1e-2 * copies);
}

TEST_F(Recipes, PpoWithRuleReward) {
  const Metrics metrics = train("ppo");
  expect_every_step_once(metrics, 1, 3);
  for (const nlohmann::json& line : metrics) {
    expect_no_mismatch(line);
    EXPECT_GT(number(line, "critic/loss"), 0.0);
  }
  EXPECT_FALSE(complete(output_ + "/model").empty());
}

TEST_F(Recipes, PpoWithTheRewardModelOfTheRewardRecipe) {
  train("sft", {"train.learning_rate=1e-2"});
  const std::string policy = "models.policy={path: " + output_ + "/model}";
  train("reward", {policy, "train.learning_rate=1e-2"});
  const Metrics metrics = train("ppo", {policy, "models.reward={path: " + output_ + "/model}", "reward=null"});
  expect_every_step_once(metrics, 1, 3);
  EXPECT_NE(number(metrics.front(), "critic/rewards/max"), number(metrics.front(), "critic/rewards/min"));
}

// tools/run_tests.py sets it for a second pass over all of these tests.
TEST_F(Recipes, AnEnvironmentVariableReparsesEveryRun) {
  write_text(scratch_ / "run.yaml", small_config("sft", scratch_.path()));
  const auto train_under = [&](const std::string& value, const std::string& name) {
    return run_collimate({"train", scratch_ / "run.yaml", "--output", scratch_ / name},
                         {{"COLLIMATE_TEST_REPARSE", value}});
  };
  const host::CommandResult plain = train_under("", "plain"), reparsed = train_under("1", "reparsed");
  ASSERT_TRUE(plain.status.ok()) << plain.errors;
  ASSERT_TRUE(reparsed.status.ok()) << reparsed.errors;
  const std::string note = "reparse: every worker is built from reparsed text, every message is reparsed\n";
  EXPECT_EQ(plain.errors.find(note), std::string::npos) << plain.errors;
  EXPECT_NE(reparsed.errors.find(note), std::string::npos) << reparsed.errors;
  EXPECT_TRUE(model_bytes(scratch_ / "plain") == model_bytes(scratch_ / "reparsed"));
  const host::CommandResult wrong = train_under("yes", "wrong");
  EXPECT_EQ(wrong.status.code, 2);
  EXPECT_EQ(last_line(wrong.errors), "[COLLIMATE_TEST_REPARSE] expected 1 or nothing, got yes");
  EXPECT_FALSE(fs::exists(scratch_ / "wrong"));
}

}  // namespace
}  // namespace collimate::test
