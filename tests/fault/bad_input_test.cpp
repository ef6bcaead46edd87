// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include "tests/fault/bad_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "collimate/shape/model_shape.h"

namespace collimate::test {
namespace {

TEST_F(BadInput, PromptsCarryLossInSftAlone) {
  replace("data: {", "data: {train_on: all_tokens, ");
  expect(2, "[data.train_on] expected completion with recipe grpo, got all_tokens; try recipe: sft");
  expect_nothing_written();
}

TEST_F(BadInput, MissingFiles) {
  const host::CommandResult result = run_collimate({"train", root_ / "none.yaml", "--output", output_});
  EXPECT_EQ(result.status.code, 2);
  EXPECT_EQ(last_line(result.errors),
            "[" + (root_ / "none.yaml") + "] expected a configuration file, got no such file");
  replace("problems.jsonl", "none.jsonl");
  write_text(root_ / "config.json", "{}");  // which is no data
  expect(2, fmt::format("[data {0}/none.jsonl] expected a file, got nothing of that name; try one that is there: "
                        "{0}/demonstrations.jsonl, {0}/held_out.jsonl, {0}/marked.jsonl, …",
                        root_.path().string()));
  replace("/start,", "/nowhere,");
  expect(2, "[model " + (root_ / "nowhere") + "] expected a model directory, got nothing of that name");
  replace("/nowhere,", "/config.json,");
  expect(2, "[model " + (root_ / "config.json") +
                "] expected a model directory, got a file; try the directory that has config.json, a "
                "tokenizer and such files");
  expect_nothing_written();
}

TEST_F(BadInput, MissingPlacementFile) {
  text_ += "placement: " + (root_ / "none.yaml") + "\n";
  expect(2, "[" + (root_ / "none.yaml") + "] expected a readable file, got No such file or directory");
  expect_nothing_written();
}

TEST_F(BadInput, WrongKeyNamesItsLineAndTheNearestKey) {
  replace("learning_rate", "learning_rat");
  expect(2, "[" + config_ + ":5] expected a key of section train, got \"learning_rat\"; try \"learning_rate\"");
  expect_nothing_written();
}

TEST_F(BadInput, WrongType) {
  replace("1e-3", "fast");
  expect(2, "[" + config_ + ":5] expected train.learning_rate to be a number, got \"fast\"");
  expect_nothing_written();
}

TEST_F(BadInput, TruncatedSafetensors) {
  const std::string file = trained_model();
  const auto bytes = fs::file_size(file);
  fs::resize_file(file, bytes - 100);
  expect(2, fmt::format("[{}] expected 85888 bytes of tensor data, got 85788; try downloading the file again: it is "
                        "truncated",
                        file));
  expect_nothing_written();
  fs::resize_file(file, 1000);
  uint64_t header = 0;  // the file begins with the size of its header
  std::memcpy(&header, read_text(file).data(), sizeof(header));
  expect(2, fmt::format("[{}] expected a header of {} bytes, got a file of 1000 bytes; try downloading the file again: "
                        "it is truncated",
                        file, header));
  expect_nothing_written();
}

TEST_F(BadInput, AbsurdHeader) {
  const std::string file = trained_model();
  write_text(file, "\xff\xff\xff\xff\xff\xff\xff\x7f{}");
  expect(2, "[" + file +
                "] expected a header of at most 100000000 bytes, got 9223372036854775807; try another file: this is no "
                "safetensors file");
  expect_nothing_written();
}

TEST_F(BadInput, UnknownArchitecture) {
  std::string config = read_text(root_ / "start/config.json");
  config.replace(config.find("\"llama\""), 7, "\"mamba\"");
  config.replace(config.find("LlamaFor"), 8, "MambaFor");
  write_text(root_ / "start/config.json", config);
  expect(2,
         fmt::format("[{} model_type] expected one of {}, got 'mamba', which needs what is missing here: a recurrent "
                     "state in place of keys and values",
                     root_ / "start/config.json", fmt::join(shape::known_families(), ", ")));
  expect_nothing_written();
}

TEST_F(BadInput, TokenizerWithoutVocabulary) {
  const std::string file = root_ / "start/tokenizer.json";
  nlohmann::json tokenizer = nlohmann::json::parse(read_text(file));
  tokenizer["model"].erase("vocab");
  write_text(file, tokenizer.dump());
  expect(2, "[" + file + "] expected a model with a vocabulary, got none; try the model's complete directory");
  fs::remove(file);
  fs::remove(root_ / "start/tokenizer_config.json");
  expect(
      2,
      "[tokenizer " + (root_ / "start") +
          "] expected tokenizer.json, vocab.json with merges.txt, tokenizer.model, tiktoken.model, qwen.tiktoken, or "
          "char_ords in tokenizer_config.json, got no vocabulary; try the model's complete directory");
  expect_nothing_written();
}

TEST_F(BadInput, EmptyDataSet) {
  write_text(root_ / "problems.jsonl", "");
  expect(2, "[data " + (root_ / "problems.jsonl") + "] expected at least one row, got an empty file");
  expect_nothing_written();
}

TEST_F(BadInput, DataThatIsNeverUsed) {
  const std::string file = root_ / "problems.jsonl";
  replace("train: " + file, "train: {path: " + file + ", weight: 0}");
  expect(2, "[data.train.weight] expected a number above 0, at most 1000000, got 0");
  replace("weight: 0", "weight: 0.001");
  expect(2,
         "[data.train] expected an epoch of at least one example, got none of 72: their weights are too small; try a "
         "larger weight");
  expect_nothing_written();
}

TEST_F(BadInput, DeeplyNestedJson) {
  const std::string deep = "{\"prompt\": " + std::string(200000, '[') + std::string(200000, ']') + "}";
  const auto message = [](const std::string& place) {
    return "[" + place + "] expected JSON of at most 200 levels, got deeper nesting";
  };
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    const std::string file = root_ / (std::string("start/") + name);
    const std::string before = fs::exists(file) ? read_text(file) : "{}";
    write_text(file, deep);
    expect(2, message(file + ":1"));
    write_text(file, before);
  }
  trained_model();
  const std::string index = root_ / "sft/model/model.safetensors.index.json";
  write_text(index, deep);
  expect(2, message(index + ":1"));
  fs::remove(index);
  const std::string rows = train_on(deep);
  expect(2, message(rows + ":3") + "; try data.bad_rows: drop, which leaves out 1 of 3 rows");
  expect_nothing_written();
}

TEST_F(BadInput, RowWithoutPrompt) {
  expect_of_row(R"({"ground_truth": "012"})",
                " column prompt] expected a value, got none; try data.bad_rows: drop, which leaves out 1 of 3 rows");
}

TEST_F(BadInput, MarginsOfSomePairsOrOfNoNumber) {
  text_ = small_config("reward", root_.path());
  const std::string file = root_ / "pairs.jsonl", pair = R"({"prompt": "12=", "chosen": "1", "rejected": "2")";
  const auto pairs = [&](const std::string& first, const std::string& third) {
    write_text(file, pair + first + "}\n\n" + pair + third + "}\n");
  };
  pairs(R"(, "margin": 1)", R"(, "margin": "wide")");
  expect(2, "[" + file + ":3 column margin] expected a number, got \"wide\"");
  pairs(R"(, "margin": "1.5")", R"(, "margin": -1e300)");
  expect(2, "[" + file + ":3 column margin] expected a finite number of float's range, got -1e+300");
  const std::string remedy = " has one, got none; try a margin in every row, or in none";
  pairs(R"(, "margin": 0)", R"(, "margin": null)");
  expect(2, "[" + file + ":3 column margin] expected a number, as " + file + ":1" + remedy);
  pairs("", R"(, "margin": 0)");
  expect(2, "[" + file + ":1 column margin] expected a number, as " + file + ":3" + remedy);
  expect_nothing_written();
}

TEST_F(BadInput, PromptLongerThanTheLimit) {
  expect_of_row(R"({"prompt": "0123456789=", "ground_truth": "012"})",
                "] expected at most 8 tokens, got 11; try a larger rollout.prompt_tokens, or data.long_rows: drop or "
                "truncate");
}

TEST_F(BadInput, RewardThatCannotBeImported) {
  python_reward("import no_such_module\n", "");
  write_text(config_, text_);
  const host::CommandResult result = run_collimate({"train", config_, "--output", output_});
  EXPECT_EQ(result.status.code, 2);
  EXPECT_THAT(
      result.errors,
      testing::AllOf(
          testing::StartsWith(fmt::format("[reward.python] expected {} to define score, got ModuleNotFoundError: "
                                          "No module named 'no_such_module'; try installing it for ",
                                          root_ / "reward.py")),
          testing::EndsWith(
              fmt::format("\n  File \"{}\", line 1, in <module>\n    import no_such_module\n", root_ / "reward.py"))));
  expect_nothing_written();
}

TEST_F(BadInput, RewardThatHangsStopsTheRun) {
  python_reward(
      "import time\ndef score(prompts, completions, **columns):\n" + kAnswersTheTrial + "    time.sleep(1000)\n",
      ", timeout_seconds: 0.2, batch_samples: 1");
  expect(1,
         "[reward score] no answer within 0.2 s; try mending the reward, or on_error: drop, or a value, "
         "for it (model reward, worker 2, iteration 1, node reward.score)");
}

TEST_F(BadInput, RewardWhoseProcessEndsSaysHow) {
  python_reward("import sys\ndef score(prompts, completions, **columns):\n" + kAnswersTheTrial + "    sys.exit(3)\n",
                ", batch_samples: 1");
  expect(1,
         "[reward score] the function's process ended with exit code 3; try mending the reward, or on_error: "
         "drop, or a value, for it (model reward, worker 2, iteration 1, node reward.score)");
}

TEST_F(BadInput, ARewardWithoutASandboxIsShown) {
  python_reward("def score(prompts, completions, **columns):\n    return [float(len(c)) for c in completions]\n",
                ", sandbox: none");
  write_text(config_, text_);
  const std::string told = " runs without a sandbox: it may do all that you may\n";
  EXPECT_THAT(run_collimate({"check", config_}).errors, testing::HasSubstr(told));
  const host::CommandResult result = run_collimate({"train", config_, "--output", output_});
  ASSERT_TRUE(result.status.ok()) << result.errors;
  EXPECT_THAT(result.errors, testing::HasSubstr(told));
  EXPECT_THAT(read_text(output_ + "/report.html"), testing::HasSubstr("ran without a sandbox (sandbox: none)"));
}

// The rights of a reward are no part of what a run is.
TEST_F(BadInput, ARunGoesOnWithOtherRightsOfItsReward) {
  python_reward("def score(prompts, completions, **columns):\n    return [float(len(c)) for c in completions]\n", "");
  write_text(config_, text_);
  ASSERT_TRUE(run_collimate({"train", config_, "--output", output_}).status.ok());
  const auto goes_on_with = [&](const std::string& set, const std::string& iterations, const std::string& told) {
    const host::CommandResult other =
        run_collimate({"train", config_, "--output", output_, "--set", set, "--set", "run.iterations=" + iterations});
    ASSERT_TRUE(other.status.ok()) << other.errors;
    EXPECT_THAT(other.errors, testing::HasSubstr(told));
  };
  goes_on_with("reward.0.readable=[/usr]", "2", "reward.0.readable: ");
  goes_on_with("reward.0.sandbox=none", "3", "reward.0.sandbox: \"namespaces\" -> \"none\"");
}

TEST_F(BadInput, ColumnsByTheNamesOfARewardsArgumentsAreRefused) {
  python_reward("def score(prompts, completions, **columns):\n    return [1.0] * len(prompts)\n", "");
  replace("train: " + (root_ / "problems.jsonl"), "train: " + (root_ / "finished.jsonl"));
  std::string rows;
  for (const std::string& row : lines_of(root_ / "problems.jsonl"))
    rows += row.substr(0, row.size() - 1) + ", \"finished\": 0}\n";
  write_text(root_ / "finished.jsonl", rows);
  const std::string refused =
      "[reward.python] expected no data column of the name of an argument that score has, got \"finished\"; try "
      "another name for it in data.columns: {finished: new_name}";
  expect(2, refused);
  expect_nothing_written();
  const host::CommandResult checked = run_collimate({"check", config_});
  EXPECT_EQ(checked.status.code, 2);
  EXPECT_THAT(checked.errors, testing::HasSubstr(refused + "\n"));
}

TEST_F(BadInput, RewardThatFailsIsCountedUnderItsStatedPolicy) {
  python_reward(
      "def score(prompts, completions, **columns):\n    return [1 / 0 if c[:1] in '01234' else 1 for c in "
      "completions]\n",
      ", batch_samples: 1, on_error: -1");
  write_text(config_, text_);
  const host::CommandResult result = run_collimate({"train", config_, "--output", output_});
  ASSERT_TRUE(result.status.ok()) << result.errors;
  const auto metrics = nlohmann::json::parse(lines_of(output_ + "/metrics.jsonl").at(0));
  const double failed = metrics.at("reward/errors").get<double>();
  EXPECT_GT(failed, 0);
  EXPECT_THAT(result.errors,
              testing::HasSubstr(fmt::format(" warning iteration 1: failed rewards: {}; the first: [reward score] "
                                             "ZeroDivisionError: division by zero; given -1\n",
                                             failed)));
  EXPECT_THAT(result.errors, testing::ContainsRegex(fmt::format("\ngrpo  1/1  .*  failed rewards {}\n", failed)));
  EXPECT_EQ(metrics.at("critic/rewards/min").get<double>(), -1);
}

// Adam's step is about the rate: the second update's gradient overflows.
TEST_F(BadInput, ARunThatDivergesIsStopped) {
  text_ = small_config("sft", root_.path());
  replace("1e-3", "1e30");
  write_text(config_, text_);
  const host::CommandResult result = run_collimate({"train", config_, "--output", output_});
  EXPECT_EQ(result.status.code, 4) << result.status.description();
  EXPECT_EQ(with_word(last_line(result.errors), "loss \\S+ and gradient norm \\S+ at", "loss X and gradient norm Y at"),
            "[train] expected a finite loss and gradient, got loss X and gradient norm Y at update 2; try a lower "
            "train.learning_rate, or look at the rows of this iteration (model policy, worker 0, iteration 2, node "
            "policy.train)");
  EXPECT_FALSE(fs::exists(output_ + "/model/model.safetensors"));
  EXPECT_THAT(result.errors, testing::HasSubstr("\nreport: " + output_ + "/report.html\n"));
  EXPECT_THAT(read_text(output_ + "/report.html"),
              testing::HasSubstr("<b>A guard stopped this run after iteration 1:</b> [train] expected a finite loss"));
}

// Nothing of a stop is left where the run goes on.
TEST_F(BadInput, WhyARunStoppedIsForgottenWhenItGoesOn) {
  const std::string why = output_ + "/stopped.json", page = output_ + "/report.html";
  write_text(config_, text_);
  const host::CommandResult stopped =
      run_collimate({"train", config_, "--output", output_}, {{"COLLIMATE_TEST_NUDGE_AT", "linear@training"}});
  ASSERT_EQ(stopped.status.code, 4) << stopped.errors;
  EXPECT_EQ(nlohmann::json::parse(read_text(why)).at("exit_code"), 4);
  EXPECT_THAT(read_text(page), testing::HasSubstr("A guard stopped this run before an iteration was finished"));
  const host::CommandResult made = run_collimate({"train", config_, "--output", output_});
  EXPECT_TRUE(made.status.ok()) << made.errors;
  EXPECT_FALSE(fs::exists(why));
  EXPECT_THAT(read_text(page), testing::Not(testing::HasSubstr("stopped this run")));
}

// The run's model is there, and worse than at first: that is no success.
TEST_F(BadInput, ARunWhoseLossHasDivergedAtItsEndSaysSo) {
  text_ = small_config("sft", root_.path());
  replace("1e-3", "0.5");
  replace("iterations: 3", "iterations: 14");
  write_text(config_, text_);
  const std::string form =
      "[train] expected a loss that falls, got a run that has diverged: the loss has risen from X to Y (the mean of 10 "
      "iterations); try a lower train.learning_rate or a longer train.warmup_updates";
  for (int call = 0; call < 2; ++call) {  // the second finds nothing left to do
    const host::CommandResult result = run_collimate({"train", config_, "--output", output_});
    EXPECT_EQ(result.status.code, 5) << result.status.description() << result.errors;
    EXPECT_EQ(with_word(last_line(result.errors), "from \\S+ to \\S+", "from X to Y"), form);
    EXPECT_THAT(result.output, testing::HasSubstr("model: " + output_ + "/model"));
  }
  EXPECT_THAT(nlohmann::json::parse(read_text(output_ + "/summary.json")).at("diverged"),
              testing::StartsWith("the loss has risen from "));
  EXPECT_THAT(read_text(output_ + "/report.html"), testing::HasSubstr("This run has diverged"));
  EXPECT_THAT(read_text(output_ + "/logs/rank-0.log"), testing::HasSubstr("the run has diverged: the loss has risen"));
}

// Has all values of a safetensors file consist of that byte.
void fill_values(const std::string& file, char byte) {
  std::string bytes = read_text(file);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(sizeof(header) + header), bytes.end(), byte);
  write_text(file, bytes);
}

TEST_F(BadInput, WeightsThatAreNaNAreRefused) {
  const std::string file = trained_model();
  fill_values(file, '\xff');
  expect(2, "[" + fs::path(file).parent_path().string() +
                " model.embed_tokens.weight] expected finite values, got 416 of 416 that are NaN or infinite; try "
                "downloading the model again, or the model of a checkpoint from before its run diverged");
}

// Weights of 2.5e17 each, whose products are infinite.
TEST_F(BadInput, ARolloutOfLogitsThatAreNaNIsStopped) {
  fill_values(trained_model(), '\x5c');
  expect(4,
         "[sample] expected finite logits, got a row with NaN or infinity; try a lower learning rate, or check the "
         "weights (model policy, worker 0, iteration 1, node policy.generate)");
}

// One ulp between the log-probs that generation recorded and those that training recomputes.
TEST_F(BadInput, AMismatchAboveItsLimitStopsTheRun) {
  const Environment nudged = {{"COLLIMATE_TEST_NUDGE_AT", "rollout.log_prob"}};
  replace("{learning_rate: 1e-3}", "{learning_rate: 1e-3, mismatch_limit: 1e-9}");
  write_text(config_, text_);
  const host::CommandResult result = run_collimate({"train", config_, "--output", output_}, nudged);
  EXPECT_EQ(result.status.code, 4) << result.status.description();
  EXPECT_EQ(
      with_word(last_line(result.errors), "got \\S+ over [0-9]+ tokens", "got X over N tokens"),
      "[mismatch/logprob_abs_max] expected at most 1e-09, got X over N tokens; try a larger train.mismatch_limit "
      "only if another engine generates (model policy_trainer, worker 0, iteration 1, node policy_trainer.train)");
  EXPECT_FALSE(fs::exists(output_ + "/model/model.safetensors"));
  const host::CommandResult exact = run_collimate({"train", config_, "--output", output_ + "-exact"});
  EXPECT_TRUE(exact.status.ok()) << "the limit is above what a right run differs by: " << exact.errors;
}

TEST_F(BadInput, TheProgramThatIsShippedHasNoTestHooks) {
  const Environment hooks = {{"COLLIMATE_TEST_NUDGE_AT", "rollout.log_prob"},
                             {"COLLIMATE_TEST_KILL_AT", "policy.generate"},
                             {"COLLIMATE_TEST_DISK_BYTES", "1"},
                             {"COLLIMATE_TEST_REPARSE", "1"},
                             {"COLLIMATE_TEST_DEVICE", "checked"}};
  replace("{learning_rate: 1e-3}", "{learning_rate: 1e-3, mismatch_limit: 1e-9}");
  write_text(config_, text_);
  const host::CommandResult result =
      run_words({COLLIMATE_BIN_DIR "/collimate", "train", config_, "--output", output_}, hooks);
  EXPECT_TRUE(result.status.ok()) << result.errors;
  EXPECT_TRUE(result.errors.starts_with(
      "warning: COLLIMATE_TEST_KILL_AT, COLLIMATE_TEST_NUDGE_AT, COLLIMATE_TEST_DISK_BYTES, "
      "COLLIMATE_TEST_REPARSE, COLLIMATE_TEST_DEVICE: set, and changes nothing: this program has no test hooks\n"))
      << result.errors;
  const host::CommandResult hooked = run_collimate({"version"}, {{"COLLIMATE_TEST_NUDGE_AT", "rollout.log_prob"}});
  EXPECT_EQ(hooked.errors,
            "warning: COLLIMATE_TEST_NUDGE_AT: set, and this program, which is for tests, does what it says\n");
}

}  // namespace
}  // namespace collimate::test
