#include "collimate/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::base {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct TrainOptions : Section {
  Option<double> learning_rate{this, "learning_rate", 1e-6, "", "step size of AdamW", above(0.0)};
  Option<int64_t> steps{this, "steps", 10, "updates", "optimizer steps", at_least(0)};
  Option<std::string> dtype{this, "dtype", "fp32", "", "type of the operands", one_of({"fp32", "bf16"})};
};

struct RunOptions : Section {
  Option<std::string> recipe{this, "recipe", "", "", "what to run"};
  Option<nlohmann::json> reward{this, "reward", nlohmann::json::array(), "", "the reward's parts", entry_list{}};
  Option<nlohmann::json> bias{this, "bias", nlohmann::json::object(), "", "numbers by token"};
  Option<std::vector<std::string>> files{this, "files", {}, "", "data | paths"};
  Nested<TrainOptions> train{this, "train", "how weights change"};
  Option<std::optional<int64_t>> limit{this, "limit", std::nullopt, "rows", "rows read"};
  Option<bool> fast{this, "fast", true, "", "cut corners", outside_hash{}};
};

RunOptions read(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  RunOptions options;
  apply(parse_config(yaml, "config.yaml", sets, &options), options);
  return options;
}

std::string error_of(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  return message_of([&] { read(yaml, sets); });
}

class ConfigFiles : public ::testing::Test {
 protected:
  ConfigFiles() { std::filesystem::create_directory(directory_ / "parts"); }
  void write(const std::string& name, const std::string& text) { std::ofstream(directory_ / name) << text; }
  RunOptions load(const std::string& name) {
    RunOptions options;
    apply(load_config(directory_ / name), options);
    return options;
  }
  std::string error_loading(const std::string& name) {
    return message_of([&] { load(name); });
  }

  const TemporaryDirectory made_;
  const std::filesystem::path directory_ = made_.path();
};

TEST(Config, ReadsEveryType) {
  const RunOptions options = read(R"(
recipe: grpo
reward: [{rule: gsm8k, weight: 2}, {command: "a b"}]
files: one.jsonl
train: {learning_rate: 1e-3, steps: 5, dtype: bf16}
limit: 7
fast: false
)");
  EXPECT_EQ(options.recipe, "grpo");
  EXPECT_EQ(options.reward.get(), nlohmann::json::parse(R"([{"rule":"gsm8k","weight":2},{"command":"a b"}])"));
  EXPECT_THAT(options.files.get(), ElementsAre("one.jsonl"));
  EXPECT_EQ(options.train.learning_rate, 1e-3);
  EXPECT_EQ(options.train.steps, 5);
  EXPECT_EQ(options.limit.get(), 7);
  EXPECT_FALSE(options.fast);
  EXPECT_EQ(read("train: {learning_rate: 1}").train.learning_rate, 1.0) << "an integer is a number";
  EXPECT_EQ(read("").train.steps, 10);
  EXPECT_EQ(read("train:\n").train.steps, 10) << "a section without keys";
  EXPECT_EQ(read("recipe: 1.0").recipe, "1.0") << "a string keeps its text";
}

TEST(Config, UnknownKeyNamesLineAndNearest) {
  EXPECT_EQ(error_of("recipe: sft\ntrain:\n  lerning_rate: 1"),
            "[config.yaml:3] expected a key of section train, got \"lerning_rate\"; try \"learning_rate\"");
  EXPECT_EQ(error_of("\nrecpie: sft"),
            "[config.yaml:2] expected a key of the configuration, got \"recpie\"; try \"recipe\"");
  EXPECT_EQ(error_of("learning_rate: 1"),
            "[config.yaml:1] expected a key of the configuration, got \"learning_rate\"; try \"train.learning_rate\"");
  EXPECT_EQ(error_of("train: {colour: red}"),
            "[config.yaml:1] expected a key of section train, got \"colour\"; try one of learning_rate, steps, dtype");
}

TEST(Config, UnknownKeysAreNamedTogether) {
  EXPECT_EQ(error_of("recpie: sft\ntrain:\n  colour: red\n  stps: 1\ntrian: {dtpe: bf16, steps: 1}\n"),
            "[config.yaml:1] expected a key of the configuration, got \"recpie\"; try \"recipe\"\n"
            "[config.yaml:3] expected a key of section train, got \"colour\"; try one of learning_rate, steps, dtype\n"
            "[config.yaml:4] expected a key of section train, got \"stps\"; try \"steps\"\n"
            "[config.yaml:5] expected a key of the configuration, got \"trian\"; try \"train\"\n"
            "[config.yaml:5] expected a key of section train, got \"dtpe\"; try \"dtype\"");
}

TEST(Config, AKeyOfTheSameNameElsewhereComesBeforeOneThatIsLikeIt) {
  EXPECT_EQ(error_of("steps: 1", {"dtype=bf16"}),
            "[config.yaml:1] expected a key of the configuration, got \"steps\"; try \"train.steps\"\n"
            "[--set dtype] expected a key of the configuration, got \"dtype\"; try \"train.dtype\"");
  EXPECT_EQ(error_of("larning_rate: 1"),
            "[config.yaml:1] expected a key of the configuration, got \"larning_rate\"; try \"train.learning_rate\"");
  EXPECT_THAT(error_of("stpes: 1"), HasSubstr("got \"stpes\"; try one of recipe, "));
}

// Keys inside belong to the key's own place, and not to a section here that is called nearly the same.
TEST(Config, AKeyOfAnotherPlaceIsNotLookedIntoAsASectionThatIsLikeIt) {
  EXPECT_EQ(error_of("dtype: {rank: 8}"),
            "[config.yaml:1] expected a key of the configuration, got \"dtype\"; try \"train.dtype\"");
}

TEST(Config, WrongTypeNamesLineKeyAndBothTypes) {
  EXPECT_EQ(error_of("train:\n  steps: ten"), "[config.yaml:2] expected train.steps to be an integer, got \"ten\"");
  EXPECT_EQ(error_of("train: {steps: 1.5}"), "[config.yaml:1] expected train.steps to be an integer, got \"1.5\"");
  EXPECT_EQ(error_of("train: {steps: '5'}"),
            "[config.yaml:1] expected train.steps to be an integer, got the text \"5\"; try 5 without quotes");
  EXPECT_EQ(error_of("train: {steps: 99999999999999999999}"),
            "[config.yaml:1] expected train.steps to be an integer, got \"99999999999999999999\"");
  for (const std::string word : {"+5", "0x10", "0o7"})
    EXPECT_EQ(error_of("train: {steps: " + word + "}"),
              "[config.yaml:1] expected train.steps to be an integer, got \"" + word + "\"");
  EXPECT_EQ(error_of("train: {learning_rate: +1e-4}"),
            "[config.yaml:1] expected train.learning_rate to be a number, got \"+1e-4\"");
  EXPECT_EQ(error_of("fast: maybe"), "[config.yaml:1] expected fast to be true or false, got \"maybe\"");
  EXPECT_EQ(error_of("train: 3"),
            "[config.yaml:1] expected section train to be a mapping of keys, got \"3\"; try train: {learning_rate: …}");
  EXPECT_EQ(error_of("files: {a: b}"), "[config.yaml:1] expected files to be a list, each a string, got a mapping");
  EXPECT_EQ(error_of("files:\n- a\n- [b]"), "[config.yaml:3] expected files.1 to be a string, got a list");
  EXPECT_EQ(error_of("recipe:"), "[config.yaml:1] expected recipe to be a string, got nothing");
  EXPECT_EQ(error_of("[1, 2]"), "[config.yaml:1] expected the configuration to be a mapping of keys, got a list");
}

TEST(Config, FailedCheckNamesTheLine) {
  EXPECT_EQ(error_of("train:\n  learning_rate: 0"),
            "[config.yaml:2] expected train.learning_rate to be above 0, got 0.0");
  EXPECT_EQ(error_of("train: {dtype: fp23}"),
            "[config.yaml:1] expected train.dtype to be one of \"fp32\", \"bf16\", got \"fp23\"; try \"fp32\"");
}

TEST(Config, BrokenYaml) {
  EXPECT_THAT(error_of("train: {steps: 1\nfast: true"), HasSubstr("[config.yaml:2] expected valid YAML, got"));
  EXPECT_EQ(error_of("fast: true\nfast: false"),
            "[config.yaml:2] expected every key once, got \"fast\" twice; try one of "
            "the two lines alone");
  EXPECT_THAT(error_of("fast: true\n---\nfast: false"), HasSubstr("expected one YAML document"));
  for (const char* list : {"[a], [b]", "\"a\", b", "{a: 1}, b"}) {  // the parser would read them for ever
    EXPECT_THAT(error_of(list), HasSubstr("expected one YAML document, got a second one; try quotes around")) << list;
  }
}

// Nine nested lists of nine aliases would be 9^9 values.
TEST(Config, AliasesCannotExplode) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    text += fmt::format("a{0}: &a{0} [*a{1}", i, i - 1);
    for (int j = 1; j < 9; ++j) text += fmt::format(", *a{}", i - 1);
    text += "]\n";
  }
  EXPECT_THAT(error_of(text), HasSubstr("expected at most a million values"));
}

TEST(Config, SetsOverride) {
  const auto options = read("train: {steps: 5}\nreward: [{rule: a}]",
                            {"train.steps=6", "train.steps=7", "files=[a, b]", "reward.0.weight=0.5", "recipe="});
  EXPECT_EQ(options.train.steps, 7);
  EXPECT_THAT(options.files.get(), ElementsAre("a", "b"));
  EXPECT_EQ(options.reward.get()[0]["weight"], 0.5);
  EXPECT_EQ(options.reward.get()[0]["rule"], "a");
  EXPECT_EQ(options.recipe, "");
}

TEST(Config, SetsReachWhatStandsAloneForAListAsEntry0) {
  EXPECT_EQ(read("reward: {rule: a}", {"reward.0.weight=2"}).reward.get(),
            nlohmann::json::parse(R"({"rule":"a","weight":2})"));
  EXPECT_EQ(read("reward: {rule: a}", {"reward.weight=2"}).reward.get()["weight"], 2);
  EXPECT_EQ(read("reward: one.py", {"reward.0=other.py"}).reward.get(), "other.py");
  EXPECT_THAT(read("files: a", {"files.0=b"}).files.get(), ElementsAre("b"));
  EXPECT_EQ(read("bias: {13: 1}", {"bias.0=2"}).bias.get(), nlohmann::json::parse(R"({"0":2,"13":1})"))
      << "a map has keys alone";
  EXPECT_EQ(error_of("reward: {rule: a}", {"reward.1.weight=2"}),
            "[--set reward.1.weight] expected an entry 0 to 0 of the list, got 1");
  for (const char* none : {"", "reward: []"})
    EXPECT_EQ(error_of(none, {"reward.0.weight=2"}), "[--set reward.0.weight] expected a list with entries, got none");
}

TEST(Config, WrongSetsAreNamed) {
  EXPECT_EQ(error_of("", {"train.stps=6"}),
            "[--set train.stps] expected a key of section train, got \"stps\"; try \"steps\"");
  EXPECT_EQ(error_of("", {"trian.steps=6"}),
            "[--set trian.steps] expected a key of the configuration, got \"trian\"; try \"train\"");
  EXPECT_EQ(error_of("", {"a.b=c"}),
            "[--set a.b] expected a key of the configuration, got \"a\"; try one of recipe, reward, bias, files, "
            "train, limit, fast");
  EXPECT_EQ(error_of("", {"train.steps.x=1"}),
            "[--set train.steps.x] expected train.steps to be an integer, got a mapping");
  EXPECT_EQ(error_of("", {"train.steps=x"}), "[--set train.steps] expected train.steps to be an integer, got \"x\"");
  EXPECT_EQ(error_of("", {"train.steps"}), "[--set] expected section.key=value, got \"train.steps\"");
  EXPECT_EQ(error_of("", {"a..b=1"}), "[--set] expected section.key=value, got \"a..b=1\"");
  EXPECT_EQ(error_of("reward: [a]", {"reward.1=b"}), "[--set reward.1] expected an entry 0 to 0 of the list, got 1");
  EXPECT_THAT(error_of("", {"train={steps: 1"}), HasSubstr("[--set train] expected valid YAML"));
}

TEST(Config, Environment) {
  setenv("COLLIMATE_CONFIG_TEST", "12", 1);
  unsetenv("COLLIMATE_CONFIG_ABSENT");
  EXPECT_EQ(read("train:\n  steps: ${COLLIMATE_CONFIG_TEST}").train.steps, 12);
  EXPECT_EQ(read("recipe: a-${COLLIMATE_CONFIG_ABSENT:x:y}-${COLLIMATE_CONFIG_TEST}").recipe, "a-x:y-12");
  EXPECT_EQ(read("recipe: ${COLLIMATE_CONFIG_ABSENT:}").recipe, "");
  EXPECT_EQ(read("recipe: $${HOME} $5").recipe, "${HOME} $5");
  EXPECT_EQ(error_of("\nrecipe: ${COLLIMATE_CONFIG_ABSENT}"),
            "[config.yaml:2] expected the environment variable COLLIMATE_CONFIG_ABSENT, got none set; try "
            "${COLLIMATE_CONFIG_ABSENT:default}");
  EXPECT_THAT(error_of("recipe: ${HOME"), HasSubstr("[config.yaml:1] expected ${NAME} or ${NAME:default}"));
}

// A flow map needs the quotes, so they don't make a text of what is a variable and no more.
TEST(Config, AQuotedVariableHasTheTypeOfItsValue) {
  setenv("COLLIMATE_CONFIG_TEST", "12", 1);
  unsetenv("COLLIMATE_CONFIG_ABSENT");
  const RunOptions options = read(
      "train: {steps: \"${COLLIMATE_CONFIG_TEST}\", learning_rate: '${COLLIMATE_CONFIG_ABSENT:0.3}'}\n"
      "reward: [{rule: \"${COLLIMATE_CONFIG_ABSENT:exact}\", weight: \"${COLLIMATE_CONFIG_ABSENT:0.5}\", n: \"12\"}]\n"
      "fast: \"${COLLIMATE_CONFIG_ABSENT:false}\"\nrecipe: \"${COLLIMATE_CONFIG_TEST}\"");
  EXPECT_EQ(options.train.steps, 12);
  EXPECT_EQ(options.train.learning_rate, 0.3);
  EXPECT_EQ(options.reward.get(), nlohmann::json::parse(R"([{"rule":"exact","weight":0.5,"n":"12"}])"));
  EXPECT_FALSE(options.fast);
  EXPECT_EQ(options.recipe, "12");
  EXPECT_EQ(error_of("train: {steps: \"1${COLLIMATE_CONFIG_TEST}\"}"),
            "[config.yaml:1] expected train.steps to be an integer, got the text \"112\"; try 112 without quotes");
  EXPECT_EQ(error_of("train: {steps: \"${COLLIMATE_CONFIG_ABSENT:ten}\"}"),
            "[config.yaml:1] expected train.steps to be an integer, got \"ten\"");
}

TEST(Config, ABareVariableInAFlowMapIsToldToBeQuoted) {
  EXPECT_EQ(error_of("fast: true\ntrain: {steps: ${HOME:1}}"),
            "[config.yaml:2] expected valid YAML, got a { without its }; try quotes: \"${NAME:default}\"");
  EXPECT_EQ(error_of("files: [${HOME}]"),
            "[config.yaml:1] expected valid YAML, got a [ without its ]; try quotes: "
            "\"${NAME:default}\"");
  EXPECT_EQ(error_of("", {"train={steps: ${HOME}}"}),
            "[--set train] expected valid YAML, got a { without its }; try quotes: \"${NAME:default}\"");
  EXPECT_EQ(error_of("files: [\"${HOME}\", {]"), error_of("files: [\"$HOME\", {]"));
}

TEST(Config, ABracketThatNothingHasOpenedIsNamed) {
  EXPECT_THAT(error_of("files:\n  - {rule: exact}]"),
              testing::StartsWith("[config.yaml:2] expected valid YAML, got a } or ] without its { or [; try "));
}

TEST_F(ConfigFiles, IncludesMergeAndLaterKeysWin) {
  write("parts/a.yaml", "recipe: a\nfiles: [x, y]\ntrain: {steps: 1, dtype: bf16}\n");
  write("parts/b.yaml", "include: a.yaml\ntrain: {steps: 2}\n");
  write("c.yaml", "include: [parts/a.yaml, parts/b.yaml]\ntrain: {learning_rate: 0.5}\nfiles: [z]\n");
  const auto options = load("c.yaml");
  EXPECT_EQ(options.recipe, "a");
  EXPECT_EQ(options.train.steps, 2);
  EXPECT_EQ(options.train.dtype, "bf16");
  EXPECT_EQ(options.train.learning_rate, 0.5);
  EXPECT_THAT(options.files.get(), ElementsAre("z"));
}

TEST_F(ConfigFiles, IncludesMayNameVariables) {
  write("parts/a.yaml", "recipe: a\n");
  write("parts/b.yaml", "train: {steps: 2}\n");
  ::setenv("COLLIMATE_PARTS", (directory_ / "parts").c_str(), 1);
  write("c.yaml", "include: [\"${COLLIMATE_PARTS}/a.yaml\", \"${COLLIMATE_NOWHERE:parts}/b.yaml\"]\n");
  const auto options = load("c.yaml");
  ::unsetenv("COLLIMATE_PARTS");
  EXPECT_EQ(options.recipe, "a");
  EXPECT_EQ(options.train.steps, 2);
  write("d.yaml", "recipe: x\ninclude: ${COLLIMATE_NOWHERE}/a.yaml\n");
  EXPECT_EQ(error_loading("d.yaml"),
            fmt::format("[{}:2] expected the environment variable COLLIMATE_NOWHERE, got none set; try "
                        "${{COLLIMATE_NOWHERE:default}}",
                        (directory_ / "d.yaml").string()));
}

TEST_F(ConfigFiles, ErrorsNameTheIncludedFile) {
  write("parts/a.yaml", "train:\n  stesp: 1\n");
  write("c.yaml", "include: parts/a.yaml\n");
  EXPECT_EQ(error_loading("c.yaml"), fmt::format("[{}:2] expected a key of section train, got \"stesp\"; try \"steps\"",
                                                 (directory_ / "parts/a.yaml").string()));
  write("d.yaml", "recipe: x\ninclude: gone.yaml\n");
  EXPECT_THAT(error_loading("d.yaml"),
              HasSubstr(fmt::format("[{}:2] expected a configuration file, got no file {}; try one that is there: ",
                                    (directory_ / "d.yaml").string(), (directory_ / "gone.yaml").string())));
  write("e.yaml", "include: e.yaml\n");
  EXPECT_THAT(error_loading("e.yaml"), HasSubstr("expected includes without a circle"));
  EXPECT_THAT(error_loading("absent.yaml"),
              HasSubstr(fmt::format("[{}] expected a configuration file, got no such file; try one that is there: ",
                                    (directory_ / "absent.yaml").string())));
}

TEST_F(ConfigFiles, ADirectoryAndRowsAreNoConfig) {
  write("parts/a.yaml", "train: {}\n");
  EXPECT_EQ(error_loading("parts"),
            fmt::format("[{}] expected a configuration file, got a directory; try one that is "
                        "there: {}",
                        (directory_ / "parts").string(), (directory_ / "parts/a.yaml").string()));
  write("run.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n");
  EXPECT_THAT(error_loading("run.jsonl"),
              HasSubstr("expected one YAML document, got a file of rows; try collimate init"));
  write("run.yaml", "recipe: x\n");
  EXPECT_THAT(error_loading("run.yml"), HasSubstr("got no such file; try " + (directory_ / "run.yaml").string()));
}

TEST(Config, ResolvedRoundTrips) {
  const auto options = read("train: {learning_rate: 0.1}\nlimit: null", {"files=[\"a b\", 'true', '12', plain.txt]"});
  RunOptions awkward = options;
  awkward.recipe = "tab\t \"quote\" \\ ${HOME} line\nnext \x01 \u00e9 'x': # no comment";
  awkward.reward =
      nlohmann::json::parse(R"([{"rule": "a: b", "weight": 1.0, "n": 1, "deep": {"x": [null, true, "true"]}}])");
  const std::string text = resolved_config(awkward);
  const auto again = read(text);
  EXPECT_EQ(again.recipe, awkward.recipe.get()) << text;
  EXPECT_EQ(again.reward.get(), awkward.reward.get()) << text;
  EXPECT_TRUE(again.reward.get()[0]["weight"].is_number_float());
  EXPECT_EQ(again.files.get(), awkward.files.get());
  EXPECT_EQ(resolved_config(again), text);
  EXPECT_EQ(config_hash(again), config_hash(awkward));
}

TEST(Config, ResolvedKeepsDeclarationOrder) {
  EXPECT_EQ(resolved_config(read("fast: false\ntrain: {steps: 3}\nreward: {rule: exact}")), R"(recipe: ""
reward:
  rule: exact
bias: {}
files: []
train:
  learning_rate: 1e-06
  steps: 3
  dtype: fp32
limit: null
fast: false
)");
}

TEST(Config, HashSeesValuesAndNotSpelling) {
  const std::string hash = config_hash(read(""));
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash, config_hash(read("train: {learning_rate: 0.000001}\nfast: false")));
  EXPECT_NE(hash, config_hash(read("train: {learning_rate: 2e-6}")));
}

TEST(Config, SubtreeWithItsOwnOptions) {
  RunOptions options = read("\n\nreward:\n  - {steps: 4}\n  - {stps: 5}\n");
  TrainOptions entry;
  apply(options.reward.get()[0], options.reward.where(), entry);
  EXPECT_EQ(entry.steps, 4);
  EXPECT_EQ(message_of([&] { apply(options.reward.get()[1], options.reward.where(), entry); }),
            "[config.yaml:3] expected a key of the configuration, got \"stps\"; try \"steps\"");
}

TEST(Config, PartsOfAConfigNameTheirPathAndTheLineOfEachKey) {
  const ConfigSource source = parse_config("reward:\n  - steps: 4\n", "config.yaml");
  TrainOptions entry;
  apply(source.root.find("reward")->children[0], "reward.0", entry);
  EXPECT_EQ(entry.steps, 4);
  const auto error = [&](const std::string& text) -> std::string {
    try {
      apply(parse_config(text, "config.yaml").root, "reward.1", entry);
    } catch (const InputError& wrong) {
      return wrong.what();
    }
    return "";
  };
  EXPECT_EQ(error("dtype: bf16\nstps: 5"),
            "[config.yaml:2] expected a key of section reward.1, got \"stps\"; try \"steps\"");
  EXPECT_EQ(error("\ncolour: red"),
            "[config.yaml:2] expected a key of section reward.1, got \"colour\"; try one of learning_rate, steps, "
            "dtype");
  EXPECT_EQ(error("steps: -1"), "[config.yaml:1] expected reward.1.steps to be at least 0, got -1");
}

TEST(Config, HelpAndReferenceFollowFromTheDeclaration) {
  const RunOptions options;
  const std::string help = config_help(options, "train");
  EXPECT_THAT(help, HasSubstr("train: how weights change"));
  EXPECT_THAT(help, HasSubstr("10 updates"));
  EXPECT_THAT(help, HasSubstr("optimizer steps (at least 0)"));
  EXPECT_EQ(help.find("recipe"), std::string::npos);
  const std::string page = config_reference(options);
  EXPECT_THAT(page, HasSubstr("## train\n"));
  EXPECT_THAT(page, HasSubstr("| `train.learning_rate` | a number | `1e-06` |  | step size of AdamW | above 0 |\n"));
  EXPECT_THAT(page, HasSubstr("data \\| paths"));
  EXPECT_THAT(page, HasSubstr("| `reward` | a list, or its one entry | "));
}

}  // namespace
}  // namespace collimate::base
