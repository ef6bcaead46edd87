#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/rlhf/reward/reward_kinds.h"
#include "collimate/tensor/kernels/isa.h"
#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    write_small_task(root_.path());
    write_text(root_ / "run.yaml", small_config("sft", root_.path()));
  }
  // Gives what a call that must succeed prints on stdout.
  static std::string output(const std::vector<std::string>& words) {
    const host::CommandResult result = run_collimate(words);
    EXPECT_TRUE(result.status.ok()) << result.errors;
    return result.output;
  }
  static std::string error(const std::vector<std::string>& words, int code = 2) {
    const host::CommandResult result = run_collimate(words);
    EXPECT_EQ(result.status.code, code);
    EXPECT_EQ(result.output, "");
    return last_line(result.errors);
  }

  Scratch root_{"command-line"};
};

TEST_F(CommandLine, JsonOfEachVerbIsOneDocumentAlone) {
  const auto trained =
      nlohmann::json::parse(output({"train", root_ / "run.yaml", "--output", root_ / "run", "--json"}));
  EXPECT_EQ(trained.at("iterations"), 3);
  EXPECT_TRUE(fs::exists(trained.at("report").get<std::string>()));
  EXPECT_TRUE(fs::is_directory(trained.at("model").get<std::string>()));
  const auto report = nlohmann::json::parse(output({"report", root_ / "run", "--output", root_ / "a.html", "--json"}));
  EXPECT_EQ(report.at("report"), root_ / "a.html");
  const auto made = nlohmann::json::parse(
      output({"generate", root_ / "run/model", "--prompt", "12=", "--max-tokens", "2", "--json"}));
  EXPECT_EQ(made.size(), 1U);
  const auto version = nlohmann::json::parse(output({"version", "--json"}));
  EXPECT_TRUE(version.at("libtorch").get<std::string>().starts_with("2."));
  EXPECT_FALSE(version.at("version").get<std::string>().empty());
}

// One run, or two of which the rate differs; the time is the one that the terminal shows.
TEST_F(CommandLine, ReportIsOfOneRunOrComparesSeveral) {
  const std::string told = output({"train", root_ / "run.yaml", "--output", root_ / "slow", "--set",
                                   "data.eval=" + (root_ / "demonstrations.jsonl")});
  output({"train", root_ / "run.yaml", "--output", root_ / "fast", "--set", "train.learning_rate=0.05"});
  const std::string one = read_text(root_ / "slow/report.html");
  const std::string seconds = told.substr(0, told.find('\n'));
  ASSERT_TRUE(seconds.starts_with("3 iterations in ")) << told;
  EXPECT_THAT(one, HasSubstr("<b>" + seconds.substr(16) + "</b><span>whole time</span>"));
  EXPECT_THAT(one, HasSubstr("<code>collimate chat " + (root_ / "slow") + "/model</code>"));
  EXPECT_THAT(one, HasSubstr("chip up\">loss per token "));  // of the held-out rows
  EXPECT_EQ(output({"report", root_ / "slow", root_ / "fast", "--output", root_ / "both.html"}), root_ / "both.html\n");
  const std::string both = read_text(root_ / "both.html");
  EXPECT_THAT(both, HasSubstr("<h1>Runs slow and fast</h1>"));
  EXPECT_THAT(both, HasSubstr("<th scope=\"row\">train.learning_rate</th>"));
  EXPECT_THAT(error({"report", root_ / "slow", root_ / "none"}), HasSubstr("metrics.jsonl"));
}

// "1" is token 3 of this tokenizer, and the bias makes it the only one that is drawn.
TEST_F(CommandLine, GenerateShowsTheTextBeforeTheStopString) {
  output({"train", root_ / "run.yaml", "--output", root_ / "run", "--set", "run.iterations=1"});
  std::vector<std::string> words = {"generate", root_ / "run/model", "--prompt", "12=", "--max-tokens",
                                    "6",        "--logit-bias",      "{3: 100}"};
  EXPECT_EQ(output(words), "111111\n");
  words.insert(words.end(), {"--min-tokens", "3", "--stop", "111", "--temperature", ".5"});
  EXPECT_EQ(output(words), "1\n");
  words.push_back("--json");
  const auto made = nlohmann::json::parse(output(words)).at(0);
  EXPECT_EQ(made.at("token_ids"), nlohmann::json({3, 3, 3, 3}));
  EXPECT_EQ(made.at("finish"), "stop");
}

TEST_F(CommandLine, VersionNamesWhatTheProgramIsMadeOf) {
  const std::string text = output({"version"});
  for (const char* name : {"collimate ", "\nlibtorch 2.", "\ncompiler ", "\nprocessor "})
    EXPECT_THAT(text, HasSubstr(name));
}

// Instructions that this machine lacks are refused, not replaced.
TEST_F(CommandLine, TheEnvironmentChoosesTheInstructions) {
  const auto version = [](const std::string& word) {
    return run_collimate({"version", "--json"}, {{"COLLIMATE_ISA", word}});
  };
  const auto expect_chosen = [&](const std::string& word, const std::string& name) {
    const host::CommandResult result = version(word);
    ASSERT_TRUE(result.status.ok()) << result.errors;
    EXPECT_EQ(nlohmann::json::parse(result.output).at("instruction_set"), name);
  };
  const auto expect_refused = [&](const std::string& word, const std::string& why) {
    const host::CommandResult result = version(word);
    EXPECT_EQ(result.status.code, 2);
    EXPECT_EQ(last_line(result.errors), "[COLLIMATE_ISA] expected " + why);
  };
  const std::string best(tensor::name_of(tensor::best_instruction_set()));
  for (const tensor::InstructionSet set : tensor::kInstructionSets) {
    const std::string name(tensor::name_of(set));
    if (set <= tensor::best_instruction_set()) {
      expect_chosen(name, name);
    } else {
      expect_refused(name, fmt::format("an instruction set of this machine, got {}; try {}", name, best));
    }
  }
  expect_chosen("", best);
  expect_refused("sse", "avx2, avx512, avx512_bf16 or amx, got sse");
}

TEST_F(CommandLine, HelpHasTopics) {
  const std::string all = output({"help"}), reference = output({"help", "reference"});
  for (const char* word : {"reference", "rewards", "  train ", "  check "}) EXPECT_THAT(all, HasSubstr(word));
  EXPECT_THAT(reference, HasSubstr("learning_rate"));
  EXPECT_EQ(output({"help", "--reference"}), reference);
  EXPECT_THAT(output({"help", "rewards"}), HasSubstr("{rule: countdown}"));
  EXPECT_THAT(output({"help", "evaluation"}), HasSubstr("val/accuracy of completions is the share with a "));
  EXPECT_THAT(output({"help", "recipes"}),
              HasSubstr("reward   a reward model on pairs of a better and a worse answer, with margins if the rows "
                        "have them\n"));
  const std::string losses = output({"help", "losses"});
  EXPECT_THAT(losses,
              HasSubstr("losses on rollouts, for recipes grpo and ppo\n  grpo               The clipped loss of "
                        "each token, as a mean over "));
  EXPECT_THAT(losses, HasSubstr("losses on marked, for recipe kto\n  kto                KTO: "));
  EXPECT_THAT(losses, HasSubstr("\n                     reads beta, desirable_weight, undesirable_weight\n"));
  EXPECT_THAT(output({"help", "advantages"}),
              HasSubstr("for recipe grpo\n  group              GRPO: a reward less the mean of the prompt's samples"));
  EXPECT_THAT(output({"help", "presets"}), HasSubstr("\npreset: trl-grpo  # recipe grpo: TRL 1.16"));
  EXPECT_THAT(output({"help", "train.learning_rate"}), HasSubstr("peak learning rate of AdamW"));
  EXPECT_THAT(output({"help", "algorithm.missing_eos_penalty"}), Not(HasSubstr("ppo")));  // every advantage reads it
  const std::string train = output({"help", "train"});                                    // a verb and a section
  EXPECT_THAT(train, HasSubstr("--dry-run"));
  EXPECT_THAT(train, HasSubstr("learning_rate"));
  EXPECT_THAT(output({"help", "generate"}), HasSubstr("--max-tokens"));
  EXPECT_THAT(output({"bench", "--help"}), HasSubstr("quickstart"));
  EXPECT_EQ(output({"help", "help"}), all);
  EXPECT_EQ(output({"help", "models.policy.path"}), output({"help", "models.<name>.path"}));
  EXPECT_THAT(output({"help", "models.policy"}), HasSubstr("  models.<name>.from_scratch  "));
  for (const auto& [word, meant] :
       std::vector<std::pair<std::string, std::string>>{{"run.seedd", "run.seed"},
                                                        {"epsilon_hi", "algorithm.epsilon_high"},
                                                        {"trian", "train"},
                                                        {"models.policy.pth", "models.<name>.path"}})
    EXPECT_THAT(error({"help", word}), testing::EndsWith("got \"" + word + "\"; try collimate help " + meant));
  EXPECT_EQ(output({"help", "learning_rate"}), output({"help", "train.learning_rate"}));
  EXPECT_THAT(
      output({"help", "warmup_steps"}),
      AllOf(testing::StartsWith("warmup_steps is here \"train.warmup_updates\""), HasSubstr("warmup_updates  ")));
  for (const auto& [word, key] : std::vector<std::pair<std::string, std::string>>{
           {"lr", "train.learning_rate"}, {"batch_size", "train.samples_per_update"}, {"seq_len", "data.max_tokens"}})
    EXPECT_THAT(output({"help", word}), AllOf(testing::StartsWith(fmt::format("{} is here \"{}\"", word, key)),
                                              HasSubstr("\n  " + key + "  ")));
  EXPECT_EQ(output({"help", "epochs"}), output({"help", "run.epochs"}));
  EXPECT_EQ(output({"help", "beta"}), output({"help", "algorithm.beta"}));
  EXPECT_THAT(output({"help", "kl"}), HasSubstr("  algorithm.kl_coefficient  "));
  EXPECT_THAT(output({"help", "rate"}), HasSubstr("  train.value_learning_rate  "));
  EXPECT_EQ(output({"help", "output_dir"}), "output_dir is here \"--output\": an option of the command\n");
  EXPECT_THAT(output({"help", "use_vllm"}), testing::StartsWith("use_vllm has no key here; try leaving it out: "));
  EXPECT_EQ(output({"help", "orpo"}), "orpo is here recipe: dpo with algorithm: {loss_type: orpo}\n");
  for (const std::string kind : {"gym", "http", "judge", "exact"})
    EXPECT_THAT(output({"help", kind}),
                AllOf(testing::StartsWith("an entry of reward: "), HasSubstr(kind),
                      HasSubstr("\nEach entry may also have\n    weight (1.0)"), Not(HasSubstr("gsm8k"))));
  EXPECT_THAT(error({"trian", "a.yaml"}), testing::EndsWith("got \"trian\"; try collimate train"));
  EXPECT_EQ(error({"help", "learn"}),
            "[collimate help] expected a verb, a recipe, data, lora, resume, a config key, reference, recipes, losses, "
            "advantages, rewards or presets, got \"learn\"; try collimate help");
}

TEST_F(CommandLine, HelpHasAPageForEachRecipeWithAConfig) {
  for (const std::string recipe : {"sft", "distill", "reward", "process_reward", "dpo", "kto", "grpo", "ppo"})
    EXPECT_THAT(output({"help", recipe}), HasSubstr("\nrecipe: " + recipe + "\nmodels:\n  policy:\n    path: MODEL"));
  EXPECT_THAT(output({"help", "data"}), HasSubstr("\ndpo:\n{\"prompt\": \"2+2=\", \"chosen\""));
  EXPECT_THAT(output({"help", "lora"}), HasSubstr("lora: {rank: 16"));
  const std::string resume = output({"help", "resume"});
  EXPECT_THAT(resume,
              AllOf(HasSubstr("--set run.iterations=200"), HasSubstr(" devices"), HasSubstr(" run.best_metric")));
  EXPECT_THAT(resume, Not(HasSubstr("run.seed")));
}

TEST_F(CommandLine, InitWritesAConfigToBeginWith) {
  const std::string file = root_ / "mine.yaml";
  EXPECT_EQ(output({"init", "sft", root_ / "start", root_ / "demonstrations.jsonl", "--output", file}),
            file + "; next: collimate check " + file + "\n");
  EXPECT_THAT(output({"check", file, "--set", "models.policy.from_scratch=true"}),
              HasSubstr("\nlearning rate: 2e-05 constant\n"));
  EXPECT_EQ(error({"init", "sft", "--output", file}),
            "[--output] expected a file that is not there yet, got " + file + "; try another --output");
  const auto in_a_shell = [&](const std::string& words) {
    return run_words({"sh", "-c", fmt::format("cd {} && {} {}", root_.path().string(), collimate_program(), words)},
                     {});
  };
  EXPECT_EQ(
      last_line(in_a_shell("init dpo > dpo.yaml").errors),
      "[--output] expected a file that is not there yet, got dpo.yaml; try leaving out `> dpo.yaml`, as init writes "
      "the file itself");
  EXPECT_TRUE(in_a_shell("init dpo").status.ok()) << "the file that the shell left is empty";
  EXPECT_THAT(output({"init", "grpo", "--output", "-"}), HasSubstr("    path: MODEL "));
  EXPECT_THAT(
      error({"init", "stf"}),
      HasSubstr("expected one of sft, distill, reward, process_reward, dpo, kto, grpo, ppo, got 'stf'; try 'sft'"));
  EXPECT_THAT(error({"init", "orpo"}),
              testing::EndsWith("got 'orpo'; try recipe: dpo with algorithm: {loss_type: orpo}"));
}

TEST_F(CommandLine, HelpHasEveryOptionOfARewardsEntry) {
  const std::string help = output({"help", "rewards"}), reference = output({"help", "reference"});
  EXPECT_THAT(help, HasSubstr("\n    timeout_seconds (5.0 seconds) time limit for one sample; samples that take longer "
                              "together are asked one by one (above 0)\n"));
  EXPECT_THAT(help, HasSubstr("\n    pattern (\"\") Perl regular expression (PCRE2, "));
  EXPECT_THAT(reference, HasSubstr("\n# Entry of reward: `{python: FILE.py:function}`\n"));
  EXPECT_THAT(reference, HasSubstr("\n| `timeout_seconds` | a number | `5.0` | seconds | time limit for one sample; "));
  const auto part = [](const std::string& text, const std::string& title, const std::string& next) {
    const size_t begin = text.find(title);
    return begin == std::string::npos ? "" : text.substr(begin, text.find(next, begin + title.size()) - begin);
  };
  const std::string each = part(help, "\nEach entry may also have\n", "\nnothing");
  for (const rlhf::RewardForm& form : rlhf::reward_forms()) {
    const std::string page = part(reference, "\n# Entry of reward: `" + form.entry + "`\n", "\n# ");
    const std::string list = part(help, "\n  " + form.entry, "\n  {") + each;
    for (const base::ConfigItem* item : form.section->section_items()) {
      const std::string& name = item->item_name();
      EXPECT_THAT(page, HasSubstr("\n| `" + name + "` | "));
      EXPECT_EQ(list.find("\n    " + name + " (") == std::string::npos, name == form.key) << form.entry << ": " << name;
    }
  }
}

// An option that may be given several times has one value each time.
TEST_F(CommandLine, AConfigMayStandBehindAnOptionThatRepeats) {
  const std::string yaml = root_ / "run.yaml";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", "--set", "run.seed=9", "--set", "run.threads=1", yaml, "--json"},
        {"check", "--set", "run.threads=1", "run.seed=9", yaml, "--json"},
        {"check", yaml, "--set", "run.threads=1", "run.seed=9", "--json"}})
    EXPECT_EQ(nlohmann::json::parse(output(words)).at("config").at("run").at("seed"), 9);
  EXPECT_THAT(error({"train", "--set", "run.iterations=none", yaml, "--output", root_ / "run"}),
              HasSubstr("expected run.iterations to be an integer"));
}

TEST_F(CommandLine, HelpListsKeysThatBeginSo) {
  EXPECT_THAT(output({"help", "warmup"}), HasSubstr("train.warmup_updates"));
  EXPECT_THAT(output({"generate", "--help"}), HasSubstr("=128\n"));
}

TEST_F(CommandLine, ResumeBlamesItself) {
  const std::string yaml = root_ / "run.yaml";
  EXPECT_EQ(error({"train", yaml, "--output", root_ / "new", "--resume", root_ / "nowhere"}),
            "[--resume] expected the directory of a run of this config, got " + (root_ / "nowhere") +
                ", which is no directory; try the --output of the run to go on from");
  EXPECT_EQ(error({"train", yaml, "--output", root_ / "new", "--resume", root_ / "start"}),
            "[--resume] expected the directory of a run of this config, got " + (root_ / "start") +
                ", which holds other files; try the --output of the run to go on from");
  EXPECT_FALSE(fs::exists(root_ / "new"));
}

TEST_F(CommandLine, APathThatTheSystemCannotFollowIsNamed) {
  const std::string loop = root_ / "loop";
  fs::create_symlink(loop, loop);
  EXPECT_EQ(
      error({"report", loop}, 1),
      "[" + loop +
          "/summary.json] expected a path that can be reached, got Too many levels of symbolic links; try another "
          "path, or a user who may read and write there");
}

TEST_F(CommandLine, NumbersOutOfRangeAreShort) {
  EXPECT_EQ(error({"generate", root_ / "start", "--prompt", "1=", "--max-tokens", "0"}),
            "[--max-tokens] expected 1 or more, got 0; try 1");
  for (const std::string verb : {"generate", "chat"})
    EXPECT_EQ(error({verb, root_ / "start", "--seed", "-1"}), "[--seed] expected 0 or more, got -1; try 0");
  EXPECT_THAT(error({"generate", root_ / "start", "--prompt", "1=", "--temperature", "-1"}),
              "[--temperature] expected temperature to be between 0 and 10000, got -1.0");
  EXPECT_THAT(error({"generate", root_ / "start", "--prompt", "1=", "--max-tokens", "4", "--min-tokens", "5"}),
              "[--min-tokens] expected min_tokens to be at most the 4 tokens of a completion, got 5");
  EXPECT_THAT(error({"generate", root_ / "start", "--prompt", "1=", "--logit-bias", "{5: 101}"}),
              HasSubstr("[--logit-bias] expected logit_bias to be a map of token ids to numbers between -100 and 100"));
}

}  // namespace
}  // namespace collimate::test
