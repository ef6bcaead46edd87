#include "collimate/rlhf/reward/rules.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/rlhf/reward/functions.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

std::string error_of(const nlohmann::json& list) {
  return base::message_of([&] { make_rewards(list); });
}

TEST(Rules, EntriesWithWrongKeysAreRefused) {
  EXPECT_EQ(error_of({{{"rule", "exact"}, {"weight", 2}, {"on_error", "drop"}, {"field", "answer"}}}), "");
  EXPECT_EQ(error_of({{{"rule", "exact"}, {"feild", "x"}}}),
            "[reward] expected a key of section reward, got \"feild\"; try \"field\"");
  EXPECT_NE(error_of({{{"rule", "gsm8k"}, {"format_score", "much"}}}).find("to be a number"), std::string::npos);
  EXPECT_EQ(error_of({{{"rule", "exact"}, {"weight", "much"}}}).find("json"), std::string::npos);
  EXPECT_EQ(error_of({{{"rule", 7}}}), "[reward.rule] expected a name, got 7");
  EXPECT_EQ(
      error_of({{{"rule", "regex"}, {"pattern", "("}}}),
      "[reward] expected reward.pattern to be a regular expression, got \"(\" (missing closing parenthesis, at its "
      "end)");
  const std::string one =
      "[reward] expected {rule: NAME}, {function: NAME}, {python: FILE.py:function}, {gym: FILE.py:Class}, {http: URL} "
      "or {judge: URL, model: NAME}";
  EXPECT_TRUE(error_of({{{"weight", 1}}}).starts_with(one));
  EXPECT_TRUE(error_of({{{"rule", "exact"}, {"python", "a.py"}}}).starts_with(one));
  EXPECT_EQ(error_of({{{"rule", "exact"}, {"weight", 10}, {"on_error", -1e38}}}),
            "[reward.on_error] expected a value that times weight is within the range of float, got -1e+38 times 10");
  EXPECT_EQ(error_of({"exact"}), one + ", got \"exact\"; try {rule: exact}");
}

TEST(Rules, EachRefusesAKeyThatItDoesNotRead) {
  for (const RuleEntry& entry : rules())
    EXPECT_TRUE(error_of({{{"rule", entry.name}, {"unheard_of", 1}}})
                    .starts_with("[reward] expected a key of section reward, got \"unheard_of\""))
        << entry.name;
}

nlohmann::json resolved(const std::string& yaml) {
  return resolved_rewards(base::parse_config("reward: " + yaml, "run.yaml").root.children[0], "reward");
}

std::string error_resolving(const std::string& yaml) {
  return base::message_of([&] { resolved(yaml); });
}

TEST(Rules, ResolvedEntriesHaveTheDefaultsOfTheirSections) {
  const nlohmann::json exact = {
      {"rule", "exact"}, {"weight", 2.0}, {"on_error", "stop"}, {"field", "ground_truth"}, {"strip", true}};
  EXPECT_EQ(resolved("{rule: exact, weight: 2}"), nlohmann::json::array({exact}));
  EXPECT_EQ(resolved("[{python: a.py, on_error: -1}]"),
            nlohmann::json::parse(R"([{"python":"a.py","weight":1.0,"on_error":-1,"deterministic":false,)"
                                  R"("timeout_seconds":5.0,"start_timeout_seconds":60.0,"batch_samples":64,)"
                                  R"("interpreter":"","sandbox":"namespaces","network":false,"environment":[],)"
                                  R"("readable":[],"memory_gib":4.0,"processes":256,"cpu_seconds":60}])"));
  EXPECT_EQ(resolved("[{function: mine, limit: 49, deep: {a: [1]}}]"),
            nlohmann::json::parse(R"([{"function":"mine","weight":1.0,"on_error":"stop","deterministic":false,)"
                                  R"("limit":49,"deep":{"a":[1]}}])"));
  for (const RuleEntry& entry : rules()) {
    const std::string yaml = "{rule: " + entry.name + "}", error = error_resolving(yaml);
    if (!error.empty()) {  // one that needs another key says which
      EXPECT_TRUE(error.starts_with("[run.yaml:1] expected reward.") ||
                  error.starts_with("[configuration] expected reward."))
          << error;
      continue;
    }
    const nlohmann::json once = resolved(yaml);
    EXPECT_EQ(resolved(once.dump()), once) << entry.name;
  }
}

TEST(Rules, ResolvingNamesThePlaceOfWhatIsWrong) {
  EXPECT_EQ(error_resolving("\n  - rule: exact\n    feild: x"),
            "[run.yaml:3] expected a key of section reward.0, got \"feild\"; try \"field\"");
  EXPECT_EQ(error_resolving("{python: a.py, timeout: 3}"),
            "[run.yaml:1] expected a key of section reward, got \"timeout\"; try \"timeout_seconds\"");
  const std::string rule = error_resolving("\n  - rule: exact\n  - rule: gsm9k");
  EXPECT_TRUE(rule.starts_with("[run.yaml:3] expected a rule, one of gsm8k, ")) << rule;
  EXPECT_TRUE(rule.ends_with(", got 'gsm9k'; try 'gsm8k'")) << rule;
  EXPECT_EQ(error_resolving("\n  - function: mine\n    on_error: ignore"),
            "[run.yaml:3] expected reward.0.on_error to be stop, drop or a finite number, got \"ignore\"");
  EXPECT_EQ(error_resolving("\n  - python: a.py\n    deterministic: maybe"),
            "[run.yaml:3] expected reward.0.deterministic to be true or false, got \"maybe\"");
  EXPECT_EQ(error_resolving("\n  - rule: exact\n  - exact"),
            "[run.yaml:3] expected {rule: NAME}, {function: NAME}, {python: FILE.py:function}, {gym: FILE.py:Class}, "
            "{http: URL} or {judge: URL, model: NAME}, got \"exact\"; try {rule: exact}");
  for (const auto& [entry, proposed] : std::map<std::string, std::string>{
           {"{env: 'a.py:Game'}", "{gym: \"a.py:Game\"}"},
           {"{function_file: a.py}", "{python: \"a.py\"}"},
           {"{url: 'http://h/score', weight: 2}", "{http: \"http://h/score\"}"},
           {"{remote_rm_url: 'http://h/score'}", "{http: \"http://h/score\", form: openrlhf}"},
           {"'http://h:8000/v1'", "{judge: \"http://h:8000/v1\", model: NAME}"}})
    EXPECT_TRUE(error_resolving(entry).ends_with("; try " + proposed)) << error_resolving(entry);
  EXPECT_EQ(error_resolving("\n  - rule: exact\n  - rule: sequence\n    separator: '; '"),
            "[run.yaml:4] expected reward.1.separator to be one character, got \"; \"");
  EXPECT_EQ(error_resolving("\n  - rule: regex\n    pattern: a(b"),
            "[run.yaml:3] expected reward.0.pattern to be a regular expression, got \"a(b\" (missing closing "
            "parenthesis, at its end)");
  EXPECT_EQ(error_resolving("{rule: [exact]}"), "[run.yaml:1] expected reward.rule to be a name, got a list");
}

TEST(Rules, AGroundTruthOfAnotherShapeIsAFailureWhateverTheCompletion) {
  for (const char* completion : {"", "5", "<answer>5</answer>"}) {
    EXPECT_THROW(value("gsm8k", {}, completion, "none"), base::InputError) << completion;
    EXPECT_THROW(value("countdown", {}, completion, "none"), base::InputError) << completion;
    EXPECT_THROW(value("countdown", {}, completion, {{"target", 5}}), base::InputError) << completion;
  }
}

TEST(RewardFunctions, AreFoundByName) {
  register_reward("length_test", [](const nlohmann::json& entry) {
    const double scale = entry.value("scale", 1.0);
    return function_reward([scale](const RewardSample& s) { return scale * static_cast<double>(s.completion.size()); });
  });
  const auto rewards = make_rewards({{{"function", "length_test"}, {"scale", 0.5}, {"weight", 2}}});
  const ScoredSamples scored = score_samples(rewards, {{1, "", "abc", {}}, {2, "", "", {}}});
  EXPECT_EQ(scored.rewards, (std::vector<float>{3, 0}));
  EXPECT_FALSE(rewards[0].reward->pure());
  EXPECT_THROW(register_reward("length_test", nullptr), base::InputError);
  const std::string unknown = error_of({{{"function", "width"}}});  // other tests may have registered more
  EXPECT_TRUE(unknown.starts_with("[reward.function] expected one of the registered functions ")) << unknown;
  EXPECT_NE(unknown.find("length_test"), std::string::npos) << unknown;
  EXPECT_TRUE(
      unknown.ends_with(", got \"width\"; try {python: FILE.py:width} for a function in Python, a plugin that "
                        "registers it, or rlhf::register_reward in a program"))
      << unknown;
}

TEST(Rewards, NamesThatRepeatAreNumbered) {
  register_reward("regex_2",
                  [](const nlohmann::json&) { return function_reward([](const RewardSample&) { return 1.0; }); });
  const nlohmann::json regex = {{"rule", "regex"}, {"pattern", "a"}}, own = {{"function", "regex_2"}};
  std::vector<std::string> names;
  for (const RewardSpec& spec : make_rewards({regex, {{"rule", "exact"}}, regex, own, regex}))
    names.push_back(spec.name);
  EXPECT_EQ(names, (std::vector<std::string>{"regex", "exact", "regex_3", "regex_2", "regex_4"}));
  EXPECT_EQ(make_rewards(own).at(0).name, "regex_2");
}

TEST(Rewards, OnlyRulesAreDeterministicUnlessTheEntrySaysSo) {
  EXPECT_TRUE(deterministic_reward({{"rule", "exact"}}));
  for (const char* kind : {"python", "function"}) {
    EXPECT_FALSE(deterministic_reward({{kind, "judge"}})) << kind;
    EXPECT_TRUE(deterministic_reward({{kind, "judge"}, {"deterministic", true}})) << kind;
    EXPECT_THROW(deterministic_reward({{kind, "judge"}, {"deterministic", "yes"}}), base::InputError) << kind;
  }
}

TEST(Scoring, StepsOfSeveralRewardsAreMergedByWeight) {
  const auto with_steps = [](std::vector<StepReward> steps) {
    return function_reward([steps](const RewardSample&) { return Score(1.0, steps); });
  };
  std::vector<RewardSpec> specs(3);
  specs[0] = {"a", 2.0, {}, with_steps({{1, 0.25}, {3, 0.5}})};
  specs[1] = {"b", 1.0, {}, with_steps({{2, 1.0}, {3, -1.0}})};
  specs[2] = {"c", 1.0, {}, with_steps({})};
  const ScoredSamples scored = score_samples(specs, {{1, "", "abc", {}}});
  ASSERT_EQ(scored.steps[0].size(), 3U);
  EXPECT_EQ(scored.rewards[0], 4.F);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(scored.steps[0][i].end, i + 1);
  EXPECT_EQ(scored.steps[0][0].value, 0.5);
  EXPECT_EQ(scored.steps[0][1].value, 1.0);
  EXPECT_EQ(scored.steps[0][2].value, 0.0);
}

TEST(Scoring, StepsOutOfPlaceAreAnError) {
  const auto problem = [](std::vector<StepReward> steps) {
    std::vector<RewardSpec> specs(1);
    specs[0] = {"a", 1.0, OnError::parse("drop"),
                function_reward([steps](const RewardSample&) { return Score(1.0, steps); })};
    return score_samples(specs, {{1, "", "abc", {}}}).first_error;
  };
  EXPECT_EQ(problem({{0, 1.0}, {3, 1.0}}), "");
  EXPECT_EQ(problem({{4, 1.0}}), "[reward a] step 0 ends at byte 4, expected at most 3");
  EXPECT_EQ(problem({{2, 1.0}, {2, 1.0}}),
            "[reward a] step 1 ends at byte 2, expected behind 2, where the one before it ends");
  EXPECT_EQ(problem({{2, std::nan("")}}), "[reward a] reward of step 0 is nan");
}

// Python's and C++'s numbers are doubles, training's floats.
TEST(Scoring, BeyondTheRangeOfFloatIsAnErrorOfTheSample) {
  const auto scored = [](double weight, const Score& score) {
    std::vector<RewardSpec> specs(2);
    specs[0] = {"a", 1.0, OnError::parse(-1), function_reward([](const RewardSample&) { return 3e38; })};
    specs[1] = {"b", weight, OnError::parse("drop"), function_reward([score](const RewardSample&) { return score; })};
    return score_samples(specs, {{1, "", "abc", {}}});
  };
  const std::string sum = " the sample's sum is beyond the range of float";
  EXPECT_EQ(scored(1.0, 1e300).first_error, "[reward b] reward is 1e+300: at weight 1" + sum);
  EXPECT_EQ(scored(1.0, 1e300).kept, std::vector<bool>{false});
  EXPECT_EQ(scored(-1e30, 1e10).first_error, "[reward b] reward is 10000000000: at weight -1e+30" + sum);
  EXPECT_EQ(scored(1.0, 3e38).first_error, "[reward b] reward is 3e+38: at weight 1" + sum);
  EXPECT_EQ(scored(1.0, Score(1.0, {{1, 1.0}, {2, -1e300}})).first_error,
            "[reward b] reward of step 1 is -1e+300: at weight 1" + sum);
  EXPECT_EQ(scored(1.0, 3e37).errors, 0);
}

TEST(Scoring, OnErrorBeyondTheRangeOfFloatStops) {
  std::vector<RewardSpec> specs(2);
  specs[0] = {"a", 1.0, OnError::parse(-1), function_reward([](const RewardSample&) { return 3e38; })};
  specs[1] = {"b", 1.0, OnError::parse(2e38), function_reward([](const RewardSample&) { return std::nan(""); })};
  EXPECT_EQ(base::message_of<base::RunError>([&] {
              score_samples(specs, {{1, "", "abc", {}}});
            }),
            "[reward b] reward is nan; on_error's 2e+38 at weight 1 takes the sample's sum beyond the "
            "range of float; try a smaller one");
}

// Gives each sample the number that its prompt is, fails on "!", and does not judge an empty one.
class SomeReward final : public Reward {
 public:
  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    std::vector<RewardResult> results;
    for (const RewardSample& sample : samples) {
      const std::string& text = sample.prompt;
      if (text.empty() || text == "!") {
        results.push_back({std::nullopt, text.empty() ? "" : "broken"});
      } else {
        results.push_back({std::stod(text), ""});
      }
    }
    return results;
  }
};

// Scores by a list of such rewards of weight 2 with those on_error, all asked about the same prompts.
ScoredSamples judged(const std::vector<nlohmann::json>& on_errors, const std::vector<std::string>& prompts) {
  std::vector<RewardSpec> specs;
  for (const nlohmann::json& on_error : on_errors)
    specs.push_back({fmt::format("r{}", specs.size()), 2.0, OnError::parse(on_error), std::make_unique<SomeReward>()});
  std::vector<RewardSample> samples;
  for (const std::string& prompt : prompts) samples.push_back({static_cast<int64_t>(samples.size()), prompt, "", {}});
  return score_samples(specs, samples);
}

TEST(Scoring, AnUnjudgedSampleIsAFailureOfTheStrictestReward) {
  const ScoredSamples valued = judged({-1, -3, 5}, {"", "1.5", "!"});
  EXPECT_EQ(valued.rewards, (std::vector<float>{-6, 9, 2}));
  EXPECT_EQ(valued.errors, 4);  // one, and three
  ASSERT_EQ(valued.means.size(), 3U);
  for (const RewardMean& mean : valued.means) {
    EXPECT_EQ(mean.value, 1.5);
    EXPECT_EQ(mean.samples, 1);
  }
  const ScoredSamples one = judged({-1, -3, 5}, {"1", ""});
  EXPECT_EQ(one.first_error + "; " + one.first_effect, "[reward r1] no reward judged the sample; given -3");
  const ScoredSamples dropped = judged({-1, "drop"}, {"1", ""});
  EXPECT_EQ(dropped.kept, (std::vector<bool>{true, false}));
  EXPECT_EQ(dropped.first_error + "; " + dropped.first_effect, "[reward r1] no reward judged the sample; dropped");
  EXPECT_EQ(base::message_of<base::RunError>([&] {
              judged({"drop", "stop"}, {"1", ""});
            }),
            "[reward r1] no reward judged the sample; try mending the reward, or on_error: drop, or a "
            "value, for it");
}

// None adds nothing: to the sum, the mean and the errors.
TEST(Scoring, ARewardThatDoesNotJudgeASampleLeavesItToTheOthers) {
  std::vector<RewardSpec> specs(2);
  specs[0] = {"some", 1.0, {}, std::make_unique<SomeReward>()};
  specs[1] = {"all", 1.0, {}, function_reward([](const RewardSample&) { return 0.25; })};
  const ScoredSamples scored = score_samples(specs, {{1, "", "", {}}, {2, "4", "", {}}});
  EXPECT_EQ(scored.rewards, (std::vector<float>{0.25F, 4.25F}));
  EXPECT_EQ(scored.kept, (std::vector<bool>{true, true}));
  EXPECT_EQ(scored.errors, 0);
  EXPECT_EQ(scored.means.at(0).value, 4.0);
  EXPECT_EQ(scored.means.at(0).samples, 1);
  EXPECT_EQ(scored.means.at(1).samples, 2);
}

// The failure has been dealt with by its own on_error.
TEST(Scoring, AFailureBesideARewardThatDoesNotJudgeIsOne) {
  std::vector<RewardSpec> specs(2);
  specs[0] = {"some", 1.0, OnError::parse("stop"), std::make_unique<SomeReward>()};
  specs[1] = {"none", 1.0, OnError::parse(-2), function_reward([](const RewardSample&) { return std::nan(""); })};
  const ScoredSamples scored = score_samples(specs, {{1, "", "", {}}});
  EXPECT_EQ(scored.rewards, (std::vector<float>{-2}));
  EXPECT_EQ(scored.errors, 1);
}

std::vector<RewardSpec> failing(const nlohmann::json& on_error) {
  std::vector<RewardSpec> specs(1);
  specs[0] = {"half", 2.0, OnError::parse(on_error), function_reward([](const RewardSample& s) -> double {
                if (s.uid == 2) throw std::runtime_error("no answer");
                return s.uid == 3 ? std::nan("") : 0.5;
              })};
  return specs;
}

TEST(Scoring, FailuresAreCountedAndFollowOnError) {
  const std::vector<RewardSample> samples = {{1, "", "", {}}, {2, "", "", {}}, {3, "", "", {}}};
  const ScoredSamples dropped = score_samples(failing("drop"), samples);
  EXPECT_EQ(dropped.errors, 2);
  EXPECT_EQ(dropped.kept, (std::vector<bool>{true, false, false}));
  EXPECT_EQ(dropped.rewards[0], 1.0F);
  EXPECT_EQ(dropped.first_error, "[reward half] no answer");
  EXPECT_EQ(score_samples(failing(-1), samples).rewards[2], -2.0F);
  EXPECT_THROW(score_samples(failing("stop"), samples), base::RunError);
  EXPECT_THROW(OnError::parse("ignore"), base::InputError);
}

TEST(Scoring, UnknownRuleNamesTheKnownOnes) {
  const std::string error = base::message_of([&] { make_rewards(nlohmann::json::array({{{"rule", "gsm9k"}}})); });
  std::string known;
  for (const RuleEntry& entry : rules()) known += (known.empty() ? "" : ", ") + entry.name;
  EXPECT_EQ(error, "[reward] expected a rule, one of " + known + ", got 'gsm9k'; try 'gsm8k'");
}

}  // namespace
}  // namespace collimate::rlhf
