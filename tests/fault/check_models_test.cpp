// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gtest/gtest.h>

#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

// Models that cannot read what the run gives them: `check` and `train` say so alike, before anything is written.
class CheckModels : public testing::Test {
 protected:
  void SetUp() override { write_small_task(root_.path()); }

  host::CommandResult run(std::vector<std::string> words, const std::string& recipe,
                          const std::vector<std::string>& sets) {
    write_text(root_ / "run.yaml", small_config(recipe, root_.path()));
    words.insert(words.begin() + 1, root_ / "run.yaml");
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return run_collimate(words);
  }
  void expect_refused(const std::string& recipe, const std::vector<std::string>& sets, const std::string& message) {
    for (const std::vector<std::string>& words : {Words{"check"}, Words{"train", "--output", root_ / "output"}}) {
      const host::CommandResult result = run(words, recipe, sets);
      EXPECT_EQ(result.status.code, 2) << words.front();
      EXPECT_EQ(last_line(result.errors), message) << words.front();
    }
    EXPECT_FALSE(fs::exists(root_ / "output"));
  }
  void expect_accepted(const std::string& recipe, const std::vector<std::string>& sets) {
    const host::CommandResult result = run({"check"}, recipe, sets);
    EXPECT_TRUE(result.status.ok()) << result.errors;
  }

  // A model beside start/ with these ten digits for the ids 2 to 11.
  std::string other_model(const std::string& digits) {
    write_small_model(root_ / "other");
    text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<eos>"}, .eos = "<eos>", .pad = "<pad>"};
    for (const char digit : digits + "=") vocabulary.tokens.emplace_back(1, digit);
    text::CharacterTokenizer(vocabulary).save(root_ / "other");
    return root_ / "other";
  }
  // Gives the policy's tokenizer the id 13, which no other model has.
  void add_token(bool special) {
    auto tokenizer = nlohmann::json::parse(read_text(root_ / "start/tokenizer.json"));
    auto& added = tokenizer.at("added_tokens");
    if (added.back().at("id") == 13) added.erase(added.size() - 1);
    added.push_back({{"id", 13},
                     {"content", "<more>"},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
    write_text(root_ / "start/tokenizer.json", tokenizer.dump());
  }

  using Words = std::vector<std::string>;
  Scratch root_{"check-models"};
};

TEST_F(CheckModels, ATokenizerThatReadsThePolicysIdsOtherwise) {
  const std::string other = other_model("0132456789");
  const auto message = [&](const std::string& model) {
    return "[model " + model + "] expected the tokenizer of the policy " + (root_ / "start") +
           ", whose ids it reads: id 4 is \"2\" there, got \"3\" for id 4; try a model of the policy's tokenizer";
  };
  expect_refused("dpo", {"models.reference={path: " + other + ", from_scratch: true}"}, message(other));
  expect_refused("ppo", {"models.value={path: " + other + ", from_scratch: true}"}, message(other));
  const host::CommandResult made =
      run({"train", "--output", root_ / "judge"}, "reward", {"run.iterations=1", "models.policy.path=" + other});
  ASSERT_TRUE(made.status.ok()) << made.errors;
  const std::string judge = root_ / "judge/model";
  expect_refused("ppo", {"reward=null", "models.reward={path: " + judge + "}"}, message(judge));
}

// A padding token is often added to a base model, of which the reference is.
TEST_F(CheckModels, ASpecialTokenMayBeThePolicysAlone) {
  const std::string other = "models.value={path: " + other_model("0123456789") + ", from_scratch: true}";
  add_token(true);
  expect_accepted("ppo", {other});
  add_token(false);
  expect_refused("ppo", {other},
                 "[model " + (root_ / "other") +
                     "] expected token ids below its vocabulary of 13, got 13; try the tokenizer that belongs to the "
                     "model");
}

TEST_F(CheckModels, WithoutATokenizerTheVocabularysSizeCounts) {
  const std::string other = other_model("1023456789");
  for (const char* file : {"other/tokenizer.json", "other/tokenizer_config.json"}) fs::remove(root_ / file);
  const std::vector<std::string> sets = {"models.reference={path: " + other + ", from_scratch: true}"};
  expect_accepted("dpo", sets);
  replace_in(root_ / "other/config.json", "\"vocab_size\": 13", "\"vocab_size\": 9");
  expect_refused("dpo", sets,
                 "[model " + other +
                     "] expected token ids below its vocabulary of 9, got 12; try the tokenizer that belongs to the "
                     "model");
}

// The last row of the file, which three iterations may never reach.
TEST_F(CheckModels, ARowLongerThanTheModel) {
  const std::string rows = read_text(root_ / "demonstrations.jsonl");
  write_text(root_ / "demonstrations.jsonl",
             rows + "{\"prompt\": \"0123456789=\", \"completion\": \"" + std::string(30, '7') + "\"}\n");
  const std::string at_line = "[" + (root_ / "demonstrations.jsonl") + ":41] expected at most ";
  expect_refused("sft", {}, at_line + "32 tokens, got 42; try data.long_rows: drop or truncate");
  expect_accepted("sft", {"data.long_rows=drop"});  // the default limit is what the model reads
  expect_accepted("sft", {"data.long_rows=truncate"});
  expect_refused("sft", {"data.max_tokens=40"},
                 at_line +
                     "40 tokens, got 42; try data.long_rows: drop or truncate, together with data.max_tokens: "
                     "32, as the model has no more positions");
}

// A reward model scores answers: nothing is drawn by it, and it is no start of a language model.
TEST_F(CheckModels, ARewardModelInThePlaceOfALanguageModel) {
  replace_in(root_ / "start/config.json", "LlamaForCausalLM", "LlamaForSequenceClassification");
  const std::string model = "[model " + (root_ / "start") + "] expected a language model";
  const std::string said = run({"check"}, "grpo", {"models.policy.from_scratch=false"}).errors;
  EXPECT_NE(said.find(model + ", got a reward model, which scores answers; try the model that it was trained from\n"),
            std::string::npos)
      << said;
  expect_accepted("grpo", {});  // weights of its own
  for (const char* verb : {"generate", "chat", "serve"}) {
    std::vector<std::string> words = {verb, root_ / "start"};
    if (verb == std::string("generate")) words.insert(words.end(), {"--prompt", "12="});
    const host::CommandResult result = run_collimate(words);
    EXPECT_EQ(result.status.code, 2) << verb;
    EXPECT_EQ(last_line(result.errors), model +
                                            ", which completes prompts, got a reward model, which scores answers; "
                                            "try collimate eval " +
                                            (root_ / "start") +
                                            " --data PAIRS.jsonl, with rows of chosen and rejected");
  }
}

TEST_F(CheckModels, AnIdBeyondTheVocabulary) {
  replace_in(root_ / "start/config.json", "\"vocab_size\": 13", "\"vocab_size\": 12");
  expect_refused("sft", {},
                 "[model " + (root_ / "start") +
                     "] expected token ids below its vocabulary of 12, got 12; try the tokenizer that belongs to the "
                     "model");
}

}  // namespace
}  // namespace collimate::test
