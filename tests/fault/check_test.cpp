// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/host/cpu.h"
#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// `collimate check` as a user calls it: what it shows, and what it refuses.
class Check : public CheckCall {
 protected:
  // The directory of a model that the recipe has trained for one iteration.
  std::string trained_model(const std::string& recipe) {
    write_text(root_ / (recipe + ".yaml"), small_config(recipe, root_.path()));
    const host::CommandResult made = run_collimate(
        {"train", root_ / (recipe + ".yaml"), "--set", "run.iterations=1", "--output", root_ / ("run-" + recipe)});
    EXPECT_TRUE(made.status.ok()) << made.errors;
    return root_ / ("run-" + recipe + "/model");
  }
};

TEST_F(Check, ShowsConfigArithmeticAndAPromptOfARollout) {
  const std::string text = shown(
      "grpo", {"train.samples_per_update=6", "train.ppo_epochs=2", "train.warmup_updates=4", "train.lr_schedule=cosine",
               "train.micro_batch_tokens=30", "data.eval=" + (root_ / "held_out.jsonl")});
  for (const char* line :
       {"\n  warmup_updates: 4\n", "\n# loss: grpo, advantage group, beta 0\n",
        "\n# batch: 4 prompts × 4 samples = 16 rows per iteration\n",
        "\n# updates: 16 rows ÷ 6 per update × 2 passes (train.ppo_epochs) = 6 per iteration; × 3 iterations = 18 in "
        "all\n",
        "\n# warning: the last update of each iteration has 4 of 6 rows; try a train.samples_per_update that divides "
        "16\n",
        "\n# micro-batches: at most 2 per update, of up to 30 tokens each; 6 rows of at most 4 (prompt) + 6 "
        "(completion) = "
        "10 tokens\n",
        "\n# learning rate: 0 to 0.001 over 4 updates, then cosine to 0 at update 18\n",
        "\n# run: 3 iterations × 4 examples = 12, 0.167 epochs of 72\n", "\n# data.train: 72 prompts of 4 tokens\n",
        "\n#   masked      4 tokens  \"491=\"\n", "\n#   trained       the completion, which ends with 1 \"<eos>\"\n",
        "\n#   ground truth  \"149\"\n", "\n# data.eval: 8 prompts of 4 tokens\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(Check, NamesTheFunctionsWhoseRanksShareAModelOrRows) {
  EXPECT_THAT(shown("grpo", {"devices=4", "tp=2", "cp=2", "algorithm.beta=0.1"}),
              HasSubstr(" workers; policy.generate tp 2, policy_trainer.train tp 2 · cp 2, reference.log_probs tp 2 · "
                        "cp 2\n"));
  EXPECT_THAT(shown("grpo", {"devices=2", "cp=2", "cp_kind=ulysses"}),
              HasSubstr(" workers; policy_trainer.train cp 2 ulysses\n"));
}

TEST_F(Check, ThreadsAreThoseOfTheConfigElseOfOpenMpElseTheCores) {
  const std::string cores = fmt::format("{} thread{} each", host::core_count(), host::core_count() == 1 ? "" : "s");
  const auto expect = [&](const std::vector<std::string>& sets, const std::string& variable, const std::string& words) {
    const host::CommandResult result = check("sft", sets, {{"OMP_NUM_THREADS", variable}});
    EXPECT_THAT(result.output, HasSubstr("\n# placement: " + words)) << result.errors;
  };
  expect({"run.threads=0"}, "", "1 device, " + cores);
  expect({"run.threads=0"}, "6", "1 device, 6 threads each");
  expect({"run.threads=0", "devices=2"}, "6", "2 devices, 3 threads each");
  expect({"run.threads=5"}, "6", "1 device, 5 threads each");
  EXPECT_THAT(check("sft", {"run.threads=0"}, {{"OMP_NUM_THREADS", "some"}}).errors,
              HasSubstr("[OMP_NUM_THREADS] expected a number of threads from 1 to 1024, got some; try unsetting it"));
}

// 40 rows in updates of 8: what is to be raised is what says the length.
TEST_F(Check, RunsOfFewUpdatesAreWarnedOf) {
  const std::string few = "so few hardly change a model at a usual learning rate: try run.";
  EXPECT_THAT(shown("sft", {"run.epochs=1"}),
              HasSubstr("\n# warning: the run has 5 updates in all; " + few + "epochs: 4 or more\n"));
  EXPECT_THAT(shown("sft", {"run.epochs=3", "train.warmup_updates=2"}),
              HasSubstr("\n# warning: the run has 15 updates in all, 2 of them with a rate that still rises; " + few +
                        "epochs: 4 or more\n"));
  EXPECT_THAT(shown("grpo", {"run.iterations=7"}),
              HasSubstr("\n# warning: the run has 7 updates in all; " + few + "iterations: 20 or more\n"));
  EXPECT_THAT(shown("sft", {"run.epochs=4"}), testing::Not(HasSubstr("so few")));
}

TEST_F(Check, LeavesOutRowsWhereAskedTo) {
  write_text(root_ / "demonstrations.jsonl",
             "{\"prompt\": \"12=\", \"completion\": \"1\"}\n{\"prompt\": \n{\"prompt\": \"12=\", \"completion\": "
             "\"12345678\"}\n{\"prompt\": \"1=\", \"completion\": \"2\", \"label\": false}\n");
  EXPECT_THAT(reasons("sft", {}), HasSubstr("demonstrations.jsonl:2] expected well-formed JSON, got a text that ends"));
  const std::vector<std::string> sets = {"data.bad_rows=drop", "data.max_tokens=8"};
  EXPECT_THAT(reasons("sft", sets), HasSubstr("demonstrations.jsonl:3] expected at most 8 tokens, got "));
  EXPECT_THAT(
      shown("sft", {sets[0], sets[1], "data.long_rows=truncate"}),
      AllOf(ContainsRegex("warning: data.train: 1 of 4 rows left out .data.bad_rows: drop.; the first: .*:2\\]"),
            ContainsRegex("warning: data.train: 1 of 4 rows left out .data.bad_rows: drop.; the first: .*label"),
            HasSubstr("\n# data.train: 1 of 4 rows truncated (data.long_rows: truncate)\n")));
  EXPECT_THAT(shown("sft", {sets[0], sets[1], "data.long_rows=drop"}),
              ContainsRegex("data.train: 1 of 4 rows left out .data.long_rows.; the first: .*:3\\]"));
}

TEST_F(Check, TellsOfThoughtsThatTheTemplateLeavesOut) {
  write_text(root_ / "demonstrations.jsonl",
             "{\"messages\": [{\"role\": \"user\", \"content\": \"12\"}, {\"role\": \"assistant\", \"content\": "
             "\"<think>3</think>4\"}]}\n");
  write_text(root_ / "start/chat_template.jinja",
             "{% for m in messages %}{{ m.content.split('</think>')[-1] }}={% endfor %}");
  EXPECT_THAT(
      shown("sft", {"data.bad_rows=drop"}),
      ContainsRegex("warning: data.train: 1 of 1 rows stand without the thoughts of their answers .*which the "
                    "chat template leaves out; the first: .*demonstrations.jsonl:1; try a chat_template.jinja "));
}

TEST_F(Check, ShowsWhichTokensAreTrained) {
  const std::string sft = shown("sft");
  for (const char* line : {"\n# batch: 8 rows per iteration\n", "\n# updates: 8 rows ÷ 8 per update = 1",
                           "\n# data.train: 40 rows; prompts of 4 tokens, with their answers 8 tokens\n",
                           "\n# data.train, example 1, row:\n#   masked      4 tokens  \"011=\"\n"
                           "#   trained     4 tokens  \"011<eos>\"\n#   EOS           trained: token 1\n"})
    EXPECT_THAT(sft, HasSubstr(line));
  const std::string one = shown("sft", {"train.samples_per_update=1", "run.epochs=1"});
  for (const char* line : {"\n# updates: 1 row ÷ 1 per update = 1 per", "\n# batch: 1 row per iteration\n",
                           "\n# run: 40 iterations × 1 example = 40, 1 epoch of 40\n"})
    EXPECT_THAT(one, HasSubstr(line));
  EXPECT_THAT(shown("dpo", {"algorithm.beta=0.1"}),
              HasSubstr("\n# data.train, example 1, rejected:\n#   masked      4 tokens  \"011=\"\n"
                        "#   trained     5 tokens  \"1109<eos>\"\n"));
}

TEST_F(Check, ShowsThatMarginsAreRead) {
  const std::string line =
      "\n# data.train: column margin is read: by so much the chosen answer of a pair should be worth more\n";
  EXPECT_THAT(shown("reward"), testing::Not(HasSubstr(line)));
  write_text(root_ / "pairs.jsonl", R"({"prompt": "12=", "chosen": "1", "rejected": "2", "margin": 0.5})");
  EXPECT_THAT(shown("reward"), HasSubstr(line));
  const std::string dpo = shown("dpo", {"algorithm.beta=0.1"});
  EXPECT_THAT(dpo, testing::Not(HasSubstr(line)));
  EXPECT_THAT(dpo, HasSubstr("read as prompt (text), chosen, rejected; other columns: margin\n"));
}

TEST_F(Check, RefusesWhatWouldTrainWrongAndGivesEachReason) {
  const std::string text =
      reasons("grpo", {"rollout.completion_tokens=100000", "train.warmup_updates=3", "rollout.samples_per_prompt=1"});
  EXPECT_THAT(text,
              HasSubstr("/start] expected rows of at most its 32 positions, got 100004 tokens; try shorter prompts "
                        "or rows, or a smaller rollout.completion_tokens\n"));
  EXPECT_THAT(text, HasSubstr("[train.warmup_updates] expected fewer than the run's 3 updates, got 3; try a shorter "
                              "warm-up, or more run.iterations\n"));
  EXPECT_THAT(
      text, HasSubstr("[rollout.samples_per_prompt] expected 2 or more, as advantages compare the samples of a prompt "
                      "with each other, got 1; try 8\n"));
  EXPECT_THAT(reasons("grpo", {"reward=[{rule: regex, pattern: '('}]"}),
              HasSubstr("[--set reward] expected reward.0.pattern to be a regular expression, got \"(\" (missing "
                        "closing parenthesis, at its end)\n"));
}

TEST_F(Check, RefusesSamplingThatARequestWouldBeRefusedFor) {
  EXPECT_THAT(
      reasons("grpo", {"rollout.min_tokens=7"}),
      HasSubstr("[--set rollout.min_tokens] expected min_tokens to be at most the 6 tokens of a completion, got "
                "7\n"));
  const std::string eval = "data.eval=" + (root_ / "held_out.jsonl");
  EXPECT_THAT(reasons("grpo", {eval, "evaluation.min_tokens=8"}), HasSubstr("[--set evaluation.min_tokens]"));
  const std::string bias = reasons("grpo", {eval, "rollout.logit_bias={13: 1}", "evaluation.logit_bias={3: 1, 99: 1}"});
  EXPECT_THAT(bias, HasSubstr("[rollout.logit_bias] expected token ids below the tokenizer's 13, got 13\n"));
  EXPECT_THAT(bias, HasSubstr("[evaluation.logit_bias] expected token ids below the tokenizer's 13, got 99\n"));
  EXPECT_THAT(reasons("grpo", {"rollout.regex=(?=1)1"}), HasSubstr("[rollout, regex] expected a regular expression"));
  for (const char* written : {"'{\"type\": \"object\"}'", "{type: object}"})
    EXPECT_THAT(reasons("grpo", {fmt::format("rollout.json_schema={}", written)}),
                HasSubstr("[rollout, json_schema] expected a JSON schema that completions can follow"));
}

TEST_F(Check, RefusesAPlacementOfNoName) {
  EXPECT_THAT(reasons("grpo", {"placement=interlaeving"}),
              HasSubstr("[placement] expected one of flattening, interleaving, separation, auto, a file, got "
                        "'interlaeving'; try 'interleaving'\n"));
}

TEST_F(Check, RefusesAnUnknownLoss) {
  for (const char* recipe : {"sft", "dpo", "grpo"})
    EXPECT_THAT(reasons(recipe, {"algorithm.loss_type=nonsense"}), HasSubstr("[--set algorithm.loss_type]")) << recipe;
  EXPECT_THAT(reasons("dpo", {"algorithm.loss_type=grpo"}), HasSubstr("[algorithm.loss_type] expected one of "));
}

TEST_F(Check, RefusesDataSourcesOfWrongTypes) {
  const std::string path = "path: " + (root_ / "demonstrations.jsonl");
  const std::string columns = "expected the file's names with those to read them as, got ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{path: 5}", "[data.train.path] expected a file name, got 5\n"},
      {"[{path: [a]}]", "[data.train.path] expected a file name, got [\"a\"]\n"},
      {"{" + path + ", format: 5}",
       "[data.train.format] expected auto, jsonl, json, csv, tsv, parquet, arrow or text, got 5\n"},
      {"{" + path + ", weight: heavy}",
       "[data.train.weight] expected a number above 0, at most 1000000, got \"heavy\"\n"},
      {"{" + path + ", weight: 0}", "[data.train.weight] expected a number above 0, at most 1000000, got 0\n"},
      {"{" + path + ", weight: -1}", "[data.train.weight] expected a number above 0, at most 1000000, got -1\n"},
      {"{" + path + ", weight: .inf}", "[data.train.weight] expected a number above 0, at most 1000000, got inf\n"},
      {"{" + path + ", weight: .nan}", "[data.train.weight] expected a number above 0, at most 1000000, got nan\n"},
      {"{" + path + ", columns: [a]}", "[data.train.columns] " + columns + "[\"a\"]; try {problem: prompt}\n"},
      {"{" + path + ", columns: {a: 1}}", "[data.train.columns] " + columns + "{\"a\":1}; try {problem: prompt}\n"},
      {"{" + path + ", weight: 0.01}",
       "[data.train] expected an epoch of at least one example, got none of 40: their weights are too small; try a "
       "larger weight\n"}};
  for (const auto& [value, message] : cases)
    EXPECT_THAT(reasons("sft", {"data.train=" + value}), HasSubstr(message)) << value;
}

TEST_F(Check, ShowsWhatMattersAndAllKeysWhenAsked) {
  const std::string all = shown("sft", {"train.weight_decay=0.5", "rollout.temperature=1"});
  const host::CommandResult result = run_collimate({"check", root_ / "run.yaml"});
  EXPECT_THAT(result.output,
              testing::AllOf(testing::StartsWith("recipe: sft; policy: "), HasSubstr("\ntemplate: "),
                             HasSubstr("\nbatch: 8 rows per iteration\n"), testing::Not(HasSubstr("weight_decay"))));
  EXPECT_THAT(all, testing::AllOf(testing::StartsWith("# recipe: sft; "), HasSubstr("\n  weight_decay: 0.5\n")));
}

TEST_F(Check, RefusesMasksWithoutEos) {
  replace_in(root_ / "start/tokenizer_config.json", "\"eos_token\"", "\"no_eos_token\"");
  replace_in(root_ / "start/config.json", "\"eos_token_id\": 1", "\"eos_token_id\": null");
  EXPECT_THAT(reasons("sft", {}),
              HasSubstr("[data.train] expected rows whose last trained token ends a completion (nothing), got 40 of 40 "
                        "that do not (row 1, 2, 3, …): the model would not learn to stop"));
  shown("reward");  // scores the last token, whatever it is
}

TEST_F(Check, RefusesPairsThatPreferNothing) {
  replace_in(root_ / "pairs.jsonl", "\"rejected\": \"8439\"", "\"rejected\": \"348\"");
  EXPECT_THAT(shown("dpo"),
              HasSubstr("\n# warning: [data.train] expected chosen and rejected to differ, got the same in "
                        "1 of 40 pairs (pair 2): nothing is preferred in these\n"));
  const std::string pair = "{\"prompt\": \"21=\", \"chosen\": \"12\", \"rejected\": \"12\"}\n";
  write_text(root_ / "pairs.jsonl", pair + pair + pair + pair);
  for (const char* recipe : {"dpo", "reward"})
    EXPECT_THAT(reasons(recipe, {}), HasSubstr("[data.train] expected chosen and rejected to differ, got the same in 4 "
                                               "of 4 pairs (pair 1, 2, 3, …): nothing is preferred in any\n"));
}

TEST_F(Check, RefusesRowsLongerThanTheModel) {
  replace_in(root_ / "start/config.json", "\"max_position_embeddings\": 32", "\"max_position_embeddings\": 7");
  EXPECT_THAT(reasons("sft", {}),
              HasSubstr(":1] expected at most 7 tokens, got 8; try data.long_rows: drop or truncate"));
}

TEST_F(Check, RefusesATokenizerOfAnotherModel) {
  replace_in(root_ / "start/config.json", "\"vocab_size\": 13", "\"vocab_size\": 9");
  EXPECT_THAT(reasons("sft", {}), HasSubstr("expected token ids below its vocabulary of 9, got 12"));
}

TEST_F(Check, RefusesMissingWeights) {
  EXPECT_THAT(reasons("sft", {"models.policy.from_scratch=false"}), HasSubstr("model.safetensors"));
}

// Check refuses what loading would refuse, once for the three models of that directory.
TEST_F(Check, RefusesWeightsThatAreNotThoseOfTheConfig) {
  const std::string model = trained_model("sft");
  const std::vector<std::string> sets = {"models.policy={path: " + model + ", from_scratch: false}",
                                         "algorithm.beta=0.04"};
  shown("grpo", sets);
  replace_in(root_ / "run-sft/model/config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  const std::string line = "[" + model +
                           "] expected 30 tensors, got none named model.layers.2.input_layernorm.weight, "
                           "model.layers.2.self_attn.q_proj.weight, model.layers.2.self_attn.k_proj.weight, "
                           "model.layers.2.self_attn.v_proj.weight and 5 more\n";
  const std::string text = reasons("grpo", sets);
  EXPECT_THAT(text, HasSubstr(line));
  EXPECT_EQ(text.find(line), text.rfind(line));
}

TEST_F(Check, RefusesPpoWithoutAReward) {
  EXPECT_THAT(reasons("ppo", {"reward=null"}),
              HasSubstr("[reward] expected a list of rewards, or models.reward, got neither; try reward: [{rule: "
                        "exact}], or models: {reward: {path: DIRECTORY}}\n"));
  EXPECT_THAT(reasons("ppo", {"reward=null", "models.reward={path: " + (root_ / "start") + ", from_scratch: true}"}),
              HasSubstr("[models.reward.from_scratch] expected false, as the model is not trained here, got true; try "
                        "a model that recipe: reward has trained\n"));
}

TEST_F(Check, RefusesARewardModelWithoutAHead) {
  const std::string model = trained_model("sft");
  EXPECT_THAT(reasons("ppo", {"reward=null", "models.reward={path: " + model + "}"}),
              HasSubstr("[" + model +
                        "] expected score.weight, as a head that is not trained begins as its file, got none; try a "
                        "model that recipe: reward has trained\n"));
  const std::string judge = trained_model("reward");
  // A value head is trained: it may begin with zeros.
  shown("ppo", {"reward=null", "models.reward={path: " + judge + "}", "models.value={path: " + model + "}"});
}

TEST_F(Check, RefusesSamplingOfRecipesThatDrawNothing) {
  const std::string measure = "evaluation.measure: completions, which draws some, or ";
  for (const std::string recipe : {"sft", "reward", "dpo"}) {
    for (const auto& [key, first] :
         {std::pair<std::string, std::string>("rollout.temperature", ""), {"evaluation.temperature", measure}})
      EXPECT_THAT(reasons(recipe, {key + "=0.5"}), HasSubstr("[" + key + "] expected an option that recipe " + recipe +
                                                             " reads, which draws no samples, got 0.5; try " + first +
                                                             "leaving it out, or recipe: grpo or ppo\n"));
    // The options that are read, and the defaults that a resolved config writes out, are accepted.
    write_text(root_ / "again.yaml", shown(recipe, {"evaluation.examples=3", "rollout.temperature=1"}));
    EXPECT_TRUE(run_collimate({"check", root_ / "again.yaml"}).status.ok()) << recipe;
  }
  shown("grpo", {"rollout.temperature=0.5", "evaluation.temperature=0.5"});
}

TEST_F(Check, RefusesLimitsOfOtherRecipes) {
  EXPECT_THAT(reasons("grpo", {"data.max_tokens=300"}),
              HasSubstr("[data.max_tokens] expected an option that recipe grpo reads, which draws its rows, got 300; "
                        "try rollout.prompt_tokens and rollout.completion_tokens\n"));
  EXPECT_THAT(reasons("sft", {"train.value_learning_rate=0.001"}),
              HasSubstr("[train.value_learning_rate] expected an option that recipe sft reads, which trains no value "
                        "model, got 0.001; try train.learning_rate, or recipe: ppo\n"));
  for (const std::string set : {"mismatch_limit=0.5", "mismatch_check=false"})
    EXPECT_THAT(reasons("dpo", {"train." + set}),
                HasSubstr("[train." + set.substr(0, set.find('=')) +
                          "] expected an option that recipe dpo reads, which draws no samples, got " +
                          set.substr(set.find('=') + 1) + "; try leaving it out, or recipe: grpo or ppo\n"));
  shown("sft", {"data.max_tokens=300"});
  shown("ppo", {"train.value_learning_rate=0.001", "train.mismatch_limit=0.5"});
}

TEST_F(Check, RefusesRolesThatTheRecipeDoesNotRead) {
  EXPECT_THAT(reasons("dpo", {"models.refernce.path=" + (root_ / "start")}),
              HasSubstr("[--set models.refernce.path] expected a role that recipe dpo reads here, one of policy, "
                        "reference, got 'refernce'; try 'reference'\n"));
  replace_in(root_ / "run.yaml", "models: {policy: ", "models:\n  valeu: {path: x}\n  policy: ");
  replace_in(root_ / "run.yaml", "0.1}}\n", "0.1}\n");
  EXPECT_THAT(run_collimate({"check", root_ / "run.yaml"}).errors,
              HasSubstr("/run.yaml:3] expected a role that recipe dpo reads here, one of policy, reference, got "
                        "'valeu'\n"));
  EXPECT_THAT(reasons("sft", {"models.value.path=" + (root_ / "start")}),
              HasSubstr("[--set models.value.path] expected a role that recipe sft reads here, one of policy, got "
                        "'value'\n"));
  EXPECT_THAT(reasons("ppo", {"models.reward.path=" + (root_ / "start")}),  // rules come first
              HasSubstr("expected one judge of the samples: a list reward or a model, got both"));
}

TEST_F(Check, RefusesNumbersThatAreNotFinite) {
  EXPECT_THAT(reasons("sft", {"train.learning_rate=.inf"}),
              HasSubstr("[--set train.learning_rate] expected train.learning_rate to be a finite number, got .inf\n"));
}

TEST_F(Check, DryRunIsTheSameAndWritesNothing) {
  write_text(root_ / "run.yaml", small_config("sft", root_.path()));
  const std::vector<std::string> set = {"--set", "train.warmup_updates=9"};
  const auto call = [&](std::vector<std::string> words, bool wrong) {
    if (wrong) words.insert(words.end(), set.begin(), set.end());
    return run_collimate(words);
  };
  const std::vector<std::string> dry = {"train", root_ / "run.yaml", "--dry-run", "--output", root_ / "output"};
  for (bool wrong : {false, true}) {
    const host::CommandResult checked = call({"check", root_ / "run.yaml"}, wrong), tried = call(dry, wrong);
    EXPECT_EQ(tried.status.code, wrong ? 2 : 0);
    EXPECT_EQ(tried.output, checked.output);
    EXPECT_EQ(tried.errors, checked.errors);
  }
  EXPECT_FALSE(fs::exists(root_ / "output"));
}

TEST_F(Check, JsonIsOneDocument) {
  write_text(root_ / "run.yaml", small_config("sft", root_.path()));
  const host::CommandResult result =
      run_collimate({"check", root_ / "run.yaml", "--json", "--set", "train.warmup_updates=9"});
  EXPECT_EQ(result.status.code, 2);
  const auto document = nlohmann::json::parse(result.output);
  EXPECT_EQ(document.at("config").at("train").at("warmup_updates"), 9);
  EXPECT_EQ(document.at("batch").at("updates"), 3);
  EXPECT_EQ(document.at("objective").at("policy").at("loss"), nlohmann::json({"nll"}));
  EXPECT_EQ(document.at("problems").size(), 1U);
  const nlohmann::json trained = {{"trained", true}, {"tokens", 4}, {"text", "011<eos>"}};
  EXPECT_EQ(document.at("data").at(0).at("example").at(0).at(1), trained);
}

}  // namespace
}  // namespace collimate::test
