#include "collimate/recipe/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/support/text/written_files.h"

namespace collimate::recipe {
namespace {

using testing::HasSubstr;

class ConfigFile : public testing::Test {
 protected:
  Config read(const std::string& yaml, const std::vector<std::string>& sets = {}) {
    std::ofstream(path_) << "recipe: grpo\nmodels: {policy: {path: /nowhere}}\n" + yaml;
    return load(path_, sets);
  }
  // The error without the directory of the file.
  std::string error_reading(const std::string& yaml, const std::vector<std::string>& sets = {}) {
    std::string error = text::message_of<base::InputError>([&] { read(yaml, sets); });
    const std::string directory = directory_.path() + "/";
    if (const size_t at = error.find(directory); at != std::string::npos) error.erase(at, directory.size());
    return error;
  }

  text::TemporaryDirectory directory_;
  std::string path_ = directory_.path("run.yaml");
};

// A run keeps what its rewards are, so that a later default is another config and not the same run going on otherwise.
TEST_F(ConfigFile, EntriesOfRewardsAreResolved) {
  const std::string rewards =
      "reward: [{rule: exact}, {python: \"a.py:score\"}]\nevaluation: {reward: {rule: gsm8k}}\n";
  const Config config = read(rewards);
  const std::string text = base::resolved_config(config);
  for (const char* line :
       {"reward:\n  - {field: ground_truth, on_error: stop, rule: exact, strip: true, weight: 1.0}\n",
        "  - {batch_samples: 64, cpu_seconds: 60, deterministic: false, environment: [], interpreter: \"\", "
        "memory_gib: "
        "4.0, network: false, on_error: stop, processes: 256, python: \"a.py:score\", readable: [], sandbox: "
        "namespaces, start_timeout_seconds: 60.0, timeout_seconds: 5.0, weight: 1.0}\n",
        "  reward:\n    - {format_score: 0.0, on_error: stop, rule: gsm8k, weight: 1.0}\n"})
    EXPECT_THAT(text, HasSubstr(line));
  std::ofstream(path_) << text;
  const Config again = load(path_, {});
  EXPECT_EQ(base::resolved_config(again), text);
  EXPECT_EQ(base::config_hash(again), base::config_hash(config));
  EXPECT_EQ(base::config_hash(read(rewards, {"reward.0.strip=true"})), base::config_hash(config)) << "the default";
  EXPECT_NE(base::config_hash(read(rewards, {"reward.0.strip=false"})), base::config_hash(config));
  EXPECT_NE(base::config_hash(read(rewards, {"reward.1.timeout_seconds=6"})), base::config_hash(config));
}

// Wherever a reward in Python stands, its sandbox is no part of what is trained.
TEST_F(ConfigFile, RightsOfRewardsAreOutsideOfTheHash) {
  const std::string rewards =
      "reward: [{python: \"a.py:score\"}]\ndata: {eval: held_out.jsonl}\n"
      "evaluation: {reward: [{python: \"a.py:score\"}], measure: [{measure: completions, reward: [{python: "
      "\"a.py:score\"}]}]}\n";
  const std::string hash = base::config_hash(read(rewards));
  for (const std::string list : {"reward", "evaluation.reward", "evaluation.measure.0.reward"}) {
    for (const char* right : {"sandbox=none", "memory_gib=1", "readable=[/usr]", "cpu_seconds=5"})
      EXPECT_EQ(base::config_hash(read(rewards, {fmt::format("{}.0.{}", list, right)})), hash) << list << right;
    EXPECT_NE(base::config_hash(read(rewards, {list + ".0.weight=2"})), hash) << list;
  }
}

TEST_F(ConfigFile, OptionsAreSwitchedByOthersOfTheirSection) {
  std::vector<base::OptionInfo> infos;
  Config().describe_section("", infos);
  std::set<std::string> names;
  for (const base::OptionInfo& info : infos) names.insert(info.path);
  int switched = 0;
  for (const base::OptionInfo& info : infos) {
    if (info.read.option.empty()) continue;
    ++switched;
    EXPECT_TRUE(names.contains(base::join_path(info.path.substr(0, info.path.rfind('.')), info.read.option)))
        << info.path;
  }
  EXPECT_GT(switched, 20);
}

TEST_F(ConfigFile, AModelGivenAsADirectoryKeepsItBesideItsOtherKeys) {
  std::ofstream(path_) << "recipe: sft\nmodels: {policy: start}\n";
  const Config config = load(path_, {"models.policy.chat_template=chatml", "models.policy.lora.rank=8"});
  EXPECT_EQ(config.model("policy").path.get(), "start");
  EXPECT_EQ(config.model("policy").chat_template.get(), "chatml");
  EXPECT_EQ(config.model("policy").lora.rank.get(), 8);
}

TEST_F(ConfigFile, ARateThatIsNotSetIsTheRecipes) {
  const auto rate = [&](const std::string& yaml) {
    std::ofstream(path_) << yaml;
    return *load(path_, {}).train.learning_rate.get();
  };
  EXPECT_EQ(rate("recipe: sft\nmodels: {policy: /nowhere}\n"), 2e-5);
  EXPECT_EQ(rate("recipe: sft\nmodels: {policy: {path: /nowhere, lora: {rank: 8}}}\n"), 2e-4);
  EXPECT_EQ(rate("recipe: grpo\nmodels: {policy: /nowhere}\n"), 1e-6);
  EXPECT_EQ(rate("recipe: grpo\nmodels: {policy: /nowhere}\ntrain: {learning_rate: 0}\n"), 0);
}

TEST_F(ConfigFile, AnUpdateHasTheUsualRowsOfItsRecipe) {
  const auto rows = [&](const std::string& yaml) {
    std::ofstream(path_) << yaml + "models: {policy: /nowhere}\n";
    return load(path_, {}).train.samples_per_update.get();
  };
  EXPECT_EQ(rows("recipe: sft\n"), 32);
  EXPECT_EQ(rows("recipe: dpo\n"), 64);
  EXPECT_EQ(rows("recipe: reward\n"), 64);
  EXPECT_EQ(rows("recipe: grpo\n"), 0) << "all samples of the iteration";
  EXPECT_EQ(rows("recipe: sft\ntrain: {samples_per_update: 8}\n"), 8);
}

TEST_F(ConfigFile, ADirectoryAloneIsAModel) {
  std::ofstream(path_) << "recipe: grpo\nmodels: {policy: /nowhere, reference: {path: /there}}\n";
  const Config config = load(path_, {});
  EXPECT_EQ(config.model("policy").path.get(), "/nowhere");
  EXPECT_EQ(config.model("reference").path.get(), "/there");
}

TEST_F(ConfigFile, WithoutARecipeIsNamed) {
  const auto error = [&](const std::string& yaml) {
    std::ofstream(path_) << yaml;
    return text::message_of<base::InputError>([&] { load(path_, {}); });
  };
  EXPECT_EQ(error("models: {policy: {path: /nowhere}}\n"),
            "[" + path_ + "] expected a key recipe, got none; try recipe: grpo");
  EXPECT_THAT(error("recpie: grpo\n"), HasSubstr(path_ + ":1] expected a key of the configuration, got \"recpie\""));
  EXPECT_THAT(error("recipe:\n"), HasSubstr(path_ + ":1] expected recipe to be a string, got nothing"));
}

TEST_F(ConfigFile, ARoleThatIsNotNamedIsThePolicy) {
  const Config config = read("", {"models.value.path=/value"});
  EXPECT_EQ(config.model("value").path.get(), "/value");
  EXPECT_EQ(config.model("reference").path.get(), "/nowhere");
  EXPECT_EQ(text::message_of<base::InputError>([] { Config().model("reference"); }),
            "[models] expected a model \"policy\", got none; try models: {policy: {path: DIRECTORY}}");
}

TEST_F(ConfigFile, SetsReachAnEntryThatStandsAlone) {
  EXPECT_EQ(read("reward: {rule: exact}", {"reward.0.weight=2"}).reward->at(0).at("weight"), 2.0);
  EXPECT_EQ(
      read("evaluation: {reward: {rule: exact}}", {"evaluation.reward.0.field=a"}).evaluation.reward->at(0).at("field"),
      "a");
  EXPECT_EQ(read("data: {train: {path: a.jsonl}, eval: b.jsonl}", {"data.train.0.weight=2"}).data.train->at("weight"),
            2);
  EXPECT_EQ(read("data: {eval: b.jsonl}", {"data.eval.0=c.jsonl"}).data.eval.get(), "c.jsonl");
}

TEST_F(ConfigFile, WrongKeysOfEntriesNameTheirPlaceAndTheNearest) {
  EXPECT_EQ(error_reading("reward:\n  - rule: exact\n    feild: x\n"),
            "[run.yaml:5] expected a key of section reward.0, got \"feild\"; try \"field\"");
  EXPECT_EQ(error_reading("reward: {rule: exact}\n", {"reward.0.wieght=2"}),
            "[--set reward.0.wieght] expected a key of section reward, got \"wieght\"; try \"weight\"");
  EXPECT_EQ(error_reading("evaluation:\n  reward:\n    - python: a.py\n      batch_sample: 1\n"),
            "[run.yaml:6] expected a key of section evaluation.reward.0, got \"batch_sample\"; try \"batch_samples\"");
  EXPECT_EQ(error_reading("data:\n  train:\n    - a.jsonl\n    - path: b.jsonl\n      wieght: 2\n"),
            "[run.yaml:7] expected a key of section data.train.1, got \"wieght\"; try \"weight\"");
  EXPECT_EQ(error_reading("data: {eval: {pth: b.jsonl}}\n"),
            "[run.yaml:3] expected a key of section data.eval, got \"pth\"; try \"path\"");
  EXPECT_EQ(error_reading("data: {ptx: [{path: b.jsonl, wieght: 2}]}\n"),
            "[run.yaml:3] expected a key of section data.ptx.0, got \"wieght\"; try \"weight\"");
  EXPECT_EQ(error_reading("data: {train: a.jsonl}\ntrain: {learning_rate: 1e-5}\n", {"train.lr=1"})
                .find("try leaving it out"),
            std::string::npos)
      << "the command line replaces what the config has";
  EXPECT_EQ(error_reading("data: {train: a.jsonl}\n", {"data.train={file: b.jsonl}"}),
            "[--set data.train] expected a key of section data.train, got \"file\"; try one of path, format, weight, "
            "columns");
}

}  // namespace
}  // namespace collimate::recipe
