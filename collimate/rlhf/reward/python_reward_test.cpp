#include "collimate/rlhf/reward/python_reward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/python.h"
#include "collimate/rlhf/reward/python_process.h"
#include "tests/support/base/error_of.h"

namespace collimate::rlhf {
namespace {

class PythonRewardTest : public testing::Test {
 protected:
  std::unique_ptr<Reward> reward(const std::string& source, const std::string& function = "score",
                                 double timeout = 5.0) {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("collimate_reward_{}", getpid());
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "r.py") << source;
    PythonSection options;
    options.python = fmt::format("{}:{}", (directory_ / "r.py").string(), function);
    options.timeout_seconds = timeout;
    options.sandbox = sandbox_;
    return python_reward(options);
  }
  // A reward whose function sleeps where "one" is among the completions.
  std::unique_ptr<Reward> slow_at_one(int seconds, double timeout) {
    return reward(fmt::format("import time\n"
                              "def score(prompts, completions, **kw):\n"
                              "    if 'one' in completions: time.sleep({})\n"
                              "    return [7.0] * len(completions)\n",
                              seconds),
                  "score", timeout);
  }
  // A function with that body, which writes down how many samples each call has: without a sandbox it may.
  std::unique_ptr<Reward> noting_calls(const std::string& body, double timeout) {
    sandbox_ = PythonSection::kNoSandbox;
    return reward(
        "import os, signal\n"
        "def score(prompts, completions, **kw):\n"
        "    open(os.path.dirname(__file__) + '/calls', 'a').write(f'{len(prompts)} ')\n" +
            body,
        "score", timeout);
  }
  std::string noted_calls() const {
    std::string calls;
    std::getline(std::ifstream(directory_ / "calls"), calls);
    return calls;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::vector<RewardSample> samples_ = {{1, "p", "one", {{"ground_truth", 3}}},
                                        {2, "p", "four!", {{"ground_truth", 5}}}};
  std::filesystem::path directory_;
  std::string sandbox_ = PythonSection::kNamespaces;
};

TEST_F(PythonRewardTest, TrlShapeGetsColumnsByName) {
  const auto results = reward(
                           "def score(prompts, completions, ground_truth, **kw):\n"
                           "    print('noise')\n"
                           "    return [float(len(c) == g) for c, g in zip(completions, ground_truth)]\n")
                           ->score(samples_);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].value, 1.0);
  EXPECT_EQ(results[1].value, 1.0);
}

TEST_F(PythonRewardTest, FunctionsOfOneNameAreNamedByTheirFiles) {
  const std::string source = "def score(prompts, completions):\n    return [1.0] * len(prompts)\nlength = score\n";
  reward(source);
  nlohmann::json list = nlohmann::json::array();
  for (const std::string target : {"a/r.py", "a/s.py:score", "b/r.py", "a/r.py:length"}) {
    std::filesystem::create_directories(directory_ / target.substr(0, 1));
    std::ofstream(directory_ / python_function(target).file) << source;
    list.push_back({{"python", (directory_ / target).string()}});
  }
  std::vector<std::string> names;
  for (const RewardSpec& spec : make_rewards(list)) names.push_back(spec.name);
  EXPECT_EQ(names, (std::vector<std::string>{"r.score", "s.score", "r.score_2", "length"}));
  EXPECT_EQ(make_rewards(list[0]).at(0).name, "score");
}

TEST_F(PythonRewardTest, WhetherACompletionWasCutOffIsAColumn) {
  samples_[1].finished = false;
  const auto results = reward(
                           "def score(prompts, completions, finished):\n"
                           "    return [float(f) for f in finished]\n")
                           ->score(samples_);
  EXPECT_EQ(results[0].value, 1.0);
  EXPECT_EQ(results[1].value, 0.0);
}

TEST_F(PythonRewardTest, VerlShapeIsRecognised) {
  const auto results = reward(
                           "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
                           "    return {'score': ground_truth / 2}\n",
                           "compute_score")
                           ->score(samples_);
  EXPECT_EQ(results[1].value, 2.5);
}

TEST_F(PythonRewardTest, StepsEndAtCharacters) {
  samples_[0].completion = "é!b";
  const auto results = reward(
                           "def score(prompts, completions, **kw):\n"
                           "    return [{'score': 1, 'steps': iter([(1, 0.25), (2, 0.5)])},\n"
                           "            {'score': 2, 'steps': [(99, 1)]}]\n")
                           ->score(samples_);
  ASSERT_EQ(results[0].steps.size(), 2U);
  EXPECT_EQ(results[0].steps[0].end, 2U);  // bytes
  EXPECT_EQ(results[0].steps[1].end, 3U);
  EXPECT_EQ(results[0].steps[1].value, 0.5);
  EXPECT_EQ(results[1].error, "step 0 ends at 99, expected 0 to 5");
}

TEST_F(PythonRewardTest, AnAnswerIsWhatTheFunctionReadsOut) {
  samples_.push_back(samples_[0]);
  const auto results = reward(
                           "def score(prompts, completions, **kw):\n"
                           "    return [{'score': 1, 'answer': 18}, {'score': 0, 'pred': 'x'}, 0.5]\n")
                           ->score(samples_);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].answer, "18");
  EXPECT_EQ(results[1].answer, "x") << "as verl calls it";
  EXPECT_EQ(results[2].answer, std::nullopt);
}

TEST_F(PythonRewardTest, OnlyTheGuiltySampleFails) {
  const auto results = reward(
                           "def score(prompts, completions, **kw):\n"
                           "    return [1.0 / (3 - len(c)) if len(c) < 4 else 2.0 for c in completions]\n")
                           ->score(samples_);
  EXPECT_FALSE(results[0].value);
  EXPECT_EQ(results[0].error, "ZeroDivisionError: float division by zero");
  EXPECT_EQ(results[1].value, 2.0);
}

// A function that compares its batch gives other values one by one: the log says what it raised, with its place and the
// first sample, once.
TEST_F(PythonRewardTest, WhatACallOfSeveralRaisesIsLoggedOnce) {
  const auto comparing = reward(
      "def score(prompts, completions, **kw):\n"
      "    if len(completions) == 2: raise ValueError('not\\ntoday')\n"
      "    return [float(len(completions))] * len(completions)\n");
  const std::filesystem::path path = directory_ / "log";
  {
    const base::LogFile log(path);
    for (int call = 0; call < 2; ++call)
      for (const RewardResult& result : comparing->score(samples_)) EXPECT_EQ(result.value, 1.0);
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, testing::HasSubstr(
                        " warning reward.python: score raised on 2 samples in one call and on none of them alone; they "
                        "were asked one by one.\n  File \""));
  EXPECT_THAT(text, testing::HasSubstr("r.py\", line 2, in score\n    if len(completions) == 2: raise "));
  EXPECT_TRUE(text.ends_with("\nValueError: not\ntoday\nprompt: \"p\"\ncompletion: \"one\"\n(the first of the 2)\n"))
      << text;
  EXPECT_EQ(text.find(" warning"), text.rfind(" warning")) << text;
}

// Someone who wrote the function finds the line, and what it was asked about, in the log.
TEST_F(PythonRewardTest, TheFirstRaiseIsLoggedWithItsPlaceAndItsSample) {
  const auto raising = reward(
      "def half(text):\n"
      "    raise ValueError('no number')\n"
      "def score(prompts, completions, **kw):\n"
      "    return [half(c) for c in completions]\n");
  const std::filesystem::path path = directory_ / "log";
  {
    const base::LogFile log(path);
    samples_[1].completion = std::string(1000, 'x');
    for (int call = 0; call < 2; ++call) EXPECT_FALSE(raising->score({samples_[1]})[0].value);
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string file_line = fmt::format("\n  File \"{}\", line ", (directory_ / "r.py").string()), x(300, 'x');
  EXPECT_THAT(text, testing::HasSubstr(
                        " warning reward.python: score raised an exception; further ones are counted and not shown." +
                        file_line + "4, in score\n"));
  EXPECT_THAT(text, testing::HasSubstr(file_line + "2, in half\n    raise ValueError('no number')\n"));
  EXPECT_TRUE(text.ends_with("\nValueError: no number\nprompt: \"p\"\ncompletion: \"" + x + " [...] " + x + "\"\n"))
      << text;
  EXPECT_EQ(text.find(" warning"), text.rfind(" warning")) << text;
}

// Where one of them alone raises, that explains why the call of all did.
TEST_F(PythonRewardTest, ARaiseIsToldOnceForTheCallAndItsSamples) {
  const auto raising = reward("def score(prompts, completions):\n    raise ValueError('no number')\n");
  const std::filesystem::path path = directory_ / "log";
  {
    const base::LogFile log(path);
    for (int call = 0; call < 2; ++call) raising->score(samples_);
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text.find(" warning"), text.rfind(" warning")) << text;
  EXPECT_THAT(text, testing::HasSubstr("and after one the function is called again for each sample alone.\n"));
}

TEST_F(PythonRewardTest, AFunctionThatCannotBeCalledSaysHowItWouldBe) {
  const auto lacking = reward("def score(completions, answer, **kw):\n    return [1.0]\n")->score(samples_);
  EXPECT_THAT(lacking[0].error, testing::HasSubstr("asks for answer, which the data does not have"));
  for (const std::string head : {"completion, **kw", "completion, ground_truth"}) {
    const auto results = reward("def score(" + head + "):\n    return 1.0\n")->score(samples_);
    EXPECT_THAT(results[0].error, testing::HasSubstr("TypeError: score(" + head + ") cannot be called: "));
    EXPECT_THAT(results[0].error, testing::HasSubstr("expected score(prompts, completions, **columns), which gives"));
  }
  const auto verl = reward("def score(data_source, solution):\n    return 1.0\n")->score(samples_);
  EXPECT_THAT(verl[0].error, testing::HasSubstr("or score(data_source, solution_str, ground_truth, extra_info)"));
}

// One call may take longer than run.deadline_seconds, which its own time replaces.
TEST_F(PythonRewardTest, ACallTellsThatItGoesOn) {
  int told = 0;
  const auto slow = reward(
      "import os, time\n"
      "def score(prompts, completions, **kw):\n"
      "    while 'one' in completions and not os.path.exists(os.path.dirname(__file__) + '/told'): time.sleep(0.01)\n"
      "    return [7.0] * len(prompts)\n",
      "score", 30.0);
  slow->on_progress([&] {
    if (++told == 5) std::ofstream(directory_ / "told");
  });
  EXPECT_EQ(slow->score(samples_)[1].value, 7.0) << "after five calls of on_progress";
  told = 0;
  slow->score({samples_[1]});
  EXPECT_GE(told, 1);
}

TEST_F(PythonRewardTest, AnotherNumberOfRewardsThanSamplesIsAnErrorOfEach) {
  const auto results = noting_calls("    return [1.0]\n", 5)->score(samples_);
  ASSERT_EQ(results.size(), 2U);
  for (const RewardResult& result : results) EXPECT_EQ(result.error, "the function returned 1 reward for 2 samples");
  EXPECT_EQ(noted_calls(), "2 ");
}

TEST_F(PythonRewardTest, ShapesOfOtherProgramsSayWhatToWrite) {
  const auto error_of = [this](const std::string& body, const std::string& head = "def") {
    return reward(fmt::format("{} score(prompts, completions, **kw):\n    {}\n", head, body))->score(samples_)[0].error;
  };
  EXPECT_THAT(error_of("return [float(len(c[0]['content'])) for c in completions]"),
              testing::HasSubstr("; try completion in the place of completion[0][\"content\"], as prompts and "));
  EXPECT_THAT(error_of("return [{'reward': 1.0} for c in completions]"),
              testing::HasSubstr("TypeError: a reward that is a dict with 'reward'; try {\"score\": number}"));
  EXPECT_THAT(error_of("return {'rewards': [1.0, 1.0]}"),
              testing::HasSubstr("the function returned a dict, expected a "));
  EXPECT_THAT(error_of("return [1.0 for c in completions]", "async def"),
              testing::HasSubstr("TypeError: the function is async, and nothing awaits it; try def in the place of"));
}

TEST_F(PythonRewardTest, WhatIsNoNumberFailsAlone) {
  const auto results =
      reward("def score(prompts, completions, **kw):\n    return ['much', len(completions)]\n")->score(samples_);
  EXPECT_EQ(results[0].error, "'much' in the place of a number");
  EXPECT_EQ(results[1].value, 2.0);
}

TEST_F(PythonRewardTest, AnErrorThatTheSandboxCausesSaysWhatAllowsIt) {
  const auto error = [&](const std::string& raised) {
    return reward(fmt::format("def score(prompts, completions, **kw):\n    raise {}\n", raised))
        ->score({samples_[0]})[0]
        .error;
  };
  EXPECT_THAT(error("OSError(30, 'Read-only file system')"), testing::HasSubstr("; try printing it, "));
  EXPECT_THAT(error("OSError(-3, 'Temporary failure in name resolution')"), testing::HasSubstr("; try network: true"));
  EXPECT_THAT(error("FileNotFoundError(2, 'No such file', 'a.txt')"), testing::HasSubstr("; try readable: [FILE]"));
  EXPECT_THAT(error("MemoryError()"), testing::HasSubstr("; try a larger memory_gib"));
  EXPECT_EQ(error("ValueError('wrong')"), "ValueError: wrong");
  sandbox_ = PythonSection::kNoSandbox;
  EXPECT_EQ(error("MemoryError()"), "MemoryError");
}

TEST_F(PythonRewardTest, NanIsAnErrorAndNoneIsNeitherThatNorAReward) {
  samples_.resize(4, samples_[1]);
  const auto results = reward(
                           "def score(prompts, completions, **kw):\n"
                           "    return [None, float('nan'), {'score': None}, {'score': None, 'steps': [(1, 1)]}]\n")
                           ->score(samples_);
  for (const RewardResult& result : results) EXPECT_FALSE(result.value);
  EXPECT_EQ(results[0].error, "");
  EXPECT_EQ(results[1].error, "the function returned nan");
  EXPECT_EQ(results[2].error, "");
  EXPECT_EQ(results[3].error, "None in the place of a number");
}

TEST_F(PythonRewardTest, VerlShapeMayGiveNone) {
  const auto results = reward("def score(data_source, solution, truth, extra):\n    return None\n")->score(samples_);
  EXPECT_FALSE(results[0].value);
  EXPECT_EQ(results[0].error, "");
}

TEST_F(PythonRewardTest, AnErrorThatIsNoUnicodeIsStillShown) {
  const auto results =
      reward("def score(prompts, completions, **kw):\n    raise ValueError('half a pair: \\ud800')\n")->score(samples_);
  EXPECT_EQ(results[0].error, "ValueError: half a pair: ?");
}

TEST_F(PythonRewardTest, TheFunctionAndItsChildrenReadAnEmptyStdin) {
  const auto results = reward(
                           "import subprocess, sys\n"
                           "def score(prompts, completions, **kw):\n"
                           "    read = subprocess.run(['cat'], stdout=subprocess.PIPE, check=True).stdout\n"
                           "    return [float(len(read)), len(sys.stdin.read())]\n")
                           ->score(samples_);
  EXPECT_EQ(results[0].value, 0.0) << results[0].error;
  EXPECT_EQ(results[1].value, 0.0) << results[1].error;
}

TEST_F(PythonRewardTest, AProcessThatEndsSaysHow) {
  const auto results = reward(
                           "import os, signal, sys\n"
                           "def score(prompts, completions, **kw):\n"
                           "    if 'one' in completions: sys.exit(3)\n"
                           "    if 'two' in completions: os.kill(os.getpid(), signal.SIGKILL)\n"
                           "    return [7.0] * len(completions)\n",
                           "score", 60.0)
                           ->score({samples_[0], samples_[1], {3, "p", "two", {}}});
  EXPECT_EQ(results[0].error, "the function's process ended with exit code 3");
  EXPECT_EQ(results[1].value, 7.0);
  EXPECT_EQ(results[2].error, "the function's process ended with signal 9 (Killed)");
}

// The function cannot get from the data what it gets from us by the name.
TEST_F(PythonRewardTest, ColumnsByTheNamesOfOurArgumentsAreRefused) {
  const auto all = reward("def score(prompts, completions, **kw):\n    return [1.0] * len(prompts)\n");
  for (const std::string name : {"prompts", "completions", "finished"}) {
    samples_[1].example[name] = 1;
    EXPECT_EQ(base::message_of([&] { all->score(samples_); }),
              fmt::format("[reward.python] expected no data column of the name of an argument that score has, got "
                          "\"{0}\"; try another name for it in data.columns: {{{0}: new_name}}",
                          name));
    EXPECT_THROW(all->check_columns(samples_[1].example), base::InputError);
    samples_[1].example.erase(name);
  }
  samples_[1].example["finished"] = 1;
  for (const char* head : {"prompts, completions", "data_source, solution, ground_truth, extra"}) {
    const auto other = reward(fmt::format("def score({}):\n    return [1.0] * 2\n", head));
    EXPECT_NO_THROW(other->check_columns(samples_[1].example)) << head;
  }
}

TEST_F(PythonRewardTest, AHangingSampleTimesOutAlone) {
  const auto results = slow_at_one(1000, 0.4)->score(samples_);
  EXPECT_EQ(results[0].error, "no answer within 0.4 s");
  EXPECT_EQ(results[1].value, 7.0);
}

// A hang among many is noticed after the time of one sample, not of all.
TEST_F(PythonRewardTest, TheTimeOfACallIsThatOfOneSample) {
  samples_.resize(64, samples_[1]);
  // 64 times the limit would be enough for an answer.
  const auto results = slow_at_one(20, 0.4)->score(samples_);
  EXPECT_EQ(std::count_if(results.begin(), results.end(), [](const auto& r) { return !r.value; }), 1);
}

TEST_F(PythonRewardTest, ASlowFunctionIsAskedForOneSampleAtATime) {
  const auto slow = noting_calls(
      "    if len(prompts) > 1: signal.pause()\n"
      "    return [7.0] * len(prompts)\n",
      0.4);
  for (int call = 0; call < 2; ++call)
    for (const RewardResult& result : slow->score(samples_)) EXPECT_EQ(result.value, 7.0) << result.error;
  EXPECT_EQ(noted_calls(), "2 1 1 1 1 ");
}

TEST_F(PythonRewardTest, ImportErrorsNameTheFileAndPythonsReason) {
  const std::string message = base::message_of([&] { reward("import no_such_package\n"); });
  EXPECT_EQ(message,
            fmt::format("[reward.python] expected {0}/r.py to define score, got ModuleNotFoundError: No module named "
                        "'no_such_package'; try installing it for {1}, or interpreter: PYTHON in its entry, which has "
                        "it\n  File \"{0}/r.py\", line 1, in <module>\n    import no_such_package",
                        directory_.string(), host::python_interpreter()));
  PythonSection misspelt;
  misspelt.python = fmt::format("{}/score.py:score", directory_.string());
  EXPECT_THAT(base::message_of([&] { python_reward(misspelt); }),
              testing::HasSubstr(
                  fmt::format("got no file {0}/score.py; try one that is there: {0}/r.py", directory_.string())));
  EXPECT_THAT(base::message_of([&] { reward("def other(): pass\n"); }),
              testing::HasSubstr("got no function score; it defines other; try "));
  EXPECT_THAT(base::message_of([&] { reward("x = 1\ndef score(:\n"); }),
              testing::AllOf(testing::HasSubstr("got SyntaxError: "), testing::HasSubstr("r.py\", line 2\n")));
}

}  // namespace
}  // namespace collimate::rlhf
