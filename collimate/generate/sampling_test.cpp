#include "collimate/generate/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/generate/sampling_options.h"
#include "tests/support/base/error_of.h"
#include "tests/support/generate/sampling_fields.h"

namespace collimate::generate {
namespace {

std::string message_of(const char* text) {
  return base::message_of([&] { SamplingParams::from_json(nlohmann::json::parse(text)); });
}

// Every field, or every option, at a value that is not its default.
nlohmann::json all_set(bool options) {
  nlohmann::json all = nlohmann::json::object();
  for (const SamplingField& field : kSamplingFields)
    if (!options || field.help != nullptr) all[field.name] = testing_support::other_value(field);
  return all;
}

TEST(SamplingParams, RoundTrip) {
  EXPECT_EQ(SamplingParams::from_json(all_set(false)).to_json(), all_set(false));
  const SamplingParams params{
      .logit_bias = {{3, -100.0}, {50256, 0.25}}, .stop = {"\n\n", "é"}, .seed = 0xFFFFFFFFFFFFFFFFULL};
  const auto json = params.to_json();
  EXPECT_EQ(SamplingParams::from_json(json).to_json(), json);
  EXPECT_EQ(SamplingParams::from_json(json).seed, params.seed);
  EXPECT_EQ(SamplingParams::from_json(json).logit_bias, params.logit_bias);
  EXPECT_EQ(SamplingParams::from_json(json).stop, params.stop);
}

TEST(SamplingFields, EachRoundTripsJson) {
  const nlohmann::json defaults = SamplingParams().to_json();
  for (const SamplingField& field : kSamplingFields) {
    const nlohmann::json value = testing_support::other_value(field);
    const nlohmann::json read = SamplingParams::from_json({{field.name, value}}).to_json();
    EXPECT_EQ(read.at(field.name), value) << field.name;
    EXPECT_EQ(defaults.contains(field.name), field.always) << field.name;
    for (const auto& [name, standard] : defaults.items()) {
      if (name == field.name) continue;
      EXPECT_EQ(read.at(name), standard) << name << " beside " << field.name;
    }
  }
}

// Reads a configuration with this one option: the member as JSON, or "refused".
nlohmann::json in_yaml(const SamplingField& field, const nlohmann::json& value, bool greedy = true) {
  SamplingOptions options(1.0, greedy);
  try {
    base::apply(nlohmann::json{{field.name, value}}, "test", options);
  } catch (const base::InputError&) {
    return "refused";
  }
  return options.values().to_json().at(field.name);
}

TEST(SamplingFields, EachWithAHelpTextIsAnOptionWithTheDefaultOfItsMember) {
  std::vector<std::string> named, items;
  for (const SamplingField& field : kSamplingFields) {
    if (field.help == nullptr) continue;
    named.emplace_back(field.name);
    const nlohmann::json value = testing_support::other_value(field);
    EXPECT_EQ(in_yaml(field, value), value) << field.name;
  }
  const SamplingOptions options;
  for (const base::ConfigItem* item : options.section_items()) items.push_back(item->item_name());
  EXPECT_EQ(items, named);
  EXPECT_EQ(options.values().to_json(), SamplingParams().to_json());
}

TEST(SamplingFields, EachHasTheSameLimitsInJsonAndYaml) {
  for (const SamplingField& field : kSamplingFields) {
    for (const auto& [value, allowed] : testing_support::probes(field)) {
      const nlohmann::json one = {{field.name, value}};
      EXPECT_EQ(message_of(one.dump().c_str()).empty(), allowed) << one;
      if (field.help == nullptr) continue;
      EXPECT_EQ(in_yaml(field, value) != "refused", allowed) << one;
    }
  }
}

TEST(SamplingFields, ATemperatureThatIsTrainedAtIsNotZero) {
  const SamplingField& temperature = kSamplingFields[0];
  EXPECT_EQ(in_yaml(temperature, 0.0, false), "refused");
  EXPECT_EQ(in_yaml(temperature, 1e-7, false), "refused");
  EXPECT_EQ(in_yaml(temperature, 1e-6, false), 1e-6);
  EXPECT_EQ(in_yaml(temperature, 0.5, false), 0.5);
  EXPECT_EQ(in_yaml(temperature, 1e4, false), 1e4);
  EXPECT_EQ(in_yaml(temperature, 20000.0, false), "refused");
}

TEST(SamplingOptions, ACopyHasOptionsOfItsOwn) {
  SamplingOptions first(0.0);
  SamplingOptions copy = first;
  base::apply(nlohmann::json{{"top_k", 4}, {"stop", {"x"}}}, "test", copy);
  EXPECT_EQ(copy.values().top_k, 4);
  EXPECT_EQ(copy.values().temperature, 0.0);
  EXPECT_EQ(first.values().top_k, 0);
  first = copy;
  EXPECT_EQ(first.params(9).to_json(), copy.params(9).to_json());
}

TEST(SamplingParams, ErrorsNameTheKey) {
  EXPECT_EQ(message_of(R"({"top_p": 0})"), "[sampling.top_p] expected a number in (0, 1], got 0");
  EXPECT_EQ(message_of(R"({"max_tokens": 0})"), "[sampling.max_tokens] expected an integer >= 1, got 0");
  EXPECT_EQ(message_of(R"({"temperature": "hot"})"),
            "[sampling.temperature] expected a number in [0, 10000], 0 or at least 1e-06, got \"hot\"");
  EXPECT_EQ(message_of(R"({"stop_ids": [-1]})"), "[sampling.stop_ids] expected an integer in [0, 2147483647], got -1");
  EXPECT_EQ(message_of(R"({"presence_penalty": 2.5})"),
            "[sampling.presence_penalty] expected a number in [-2, 2], got 2.5");
  EXPECT_EQ(message_of(R"({"repetition_penalty": 0})"),
            "[sampling.repetition_penalty] expected a number in [0.0001, 10000], got 0");
  for (const char* bias :
       {R"({"5": 101})", R"({"5": "x"})", R"({"-5": 1})", R"({"5x": 1})", R"({"4294967296": 1})", "[]"})
    EXPECT_THAT(
        message_of(fmt::format(R"({{"logit_bias": {}}})", bias).c_str()),
        testing::StartsWith("[sampling.logit_bias] expected an object of token ids and numbers in [-100, 100]"));
  EXPECT_EQ(message_of(R"({"stop": ["x", ""]})"),
            "[sampling.stop] expected texts in UTF-8 that are not empty, got \"\"");
  EXPECT_EQ(message_of(R"({"top_logprobs": 21})"), "[sampling.top_logprobs] expected an integer in [0, 20], got 21");
  EXPECT_EQ(message_of(R"({"stop": 3})"), "[sampling.stop] expected texts in UTF-8 that are not empty, got 3");
  EXPECT_EQ(message_of(R"({"min_tokens": 5, "max_tokens": 4})"),
            "[sampling.min_tokens] expected at most max_tokens, 4, got 5");
  EXPECT_EQ(message_of(R"({"timeout_seconds": -1})"),
            "[sampling.timeout_seconds] expected a number in [0, 1000000000], got -1");
  EXPECT_THAT(message_of(R"({"top_n": 1})"), testing::HasSubstr("top_k"));
  EXPECT_THAT(message_of(R"({"top_n": 1})"), testing::HasSubstr("got top_n"));
  EXPECT_EQ(message_of("[]"), "[sampling] expected an object, got []");
}

TEST(SamplingParams, OneStopStringNeedsNoList) {
  EXPECT_EQ(SamplingParams::from_json({{"stop", "x"}}).stop, std::vector<std::string>{"x"});
  EXPECT_THROW(SamplingParams::from_json({{"stop", "\xff"}}), base::InputError);
}

TEST(SamplingOptions, EveryParameterCanBeSet) {
  SamplingOptions options;
  EXPECT_EQ(options.params(9).to_json(), (SamplingParams{.max_tokens = 9}.to_json()));
  EXPECT_FALSE(options.params(9).to_json().contains("timeout_seconds"));  // no clock decides in a run
  const nlohmann::json given = all_set(true);
  base::apply(given, "test", options);
  nlohmann::json read = options.params(9).to_json();
  read.erase("seed");
  read.erase("max_tokens");
  EXPECT_EQ(read, given);
  SamplingOptions again;
  base::apply(base::to_json(options.section_value()), "test", again);
  EXPECT_EQ(again.params(9).to_json(), options.params(9).to_json());
}

TEST(SamplingOptions, ErrorsNameTheOptionAndItsPlace) {
  const auto message = [](const std::string& yaml) {
    SamplingOptions options;
    return base::message_of([&] {
      base::apply(base::parse_config(yaml, "c.yaml"), options);
      options.params(4);
    });
  };
  EXPECT_EQ(message("min_tokens: 4\nlogit_bias: {5: -100}\nstop: \"\\n\"\nrepetition_penalty: 1.1"), "");
  EXPECT_EQ(message("\nmin_tokens: 5"),
            "[c.yaml:2] expected min_tokens to be at most the 4 tokens of a completion, got 5");
  EXPECT_EQ(
      message("logit_bias: {5: -101}"),
      "[c.yaml:1] expected logit_bias to be a map of token ids to numbers between -100 and 100, got {\"5\": -101}");
  EXPECT_EQ(message("stop: [a, '']"), "[c.yaml:1] expected stop to be not empty, got [a, \"\"]");
  EXPECT_EQ(message("frequency_penalty: 3"), "[c.yaml:1] expected frequency_penalty to be between -2 and 2, got 3.0");
  EXPECT_EQ(message("repetition_penalty: 0"),
            "[c.yaml:1] expected repetition_penalty to be between 0.0001 and 10000, got 0.0");
  EXPECT_EQ(message("temperature: 20000"), "[c.yaml:1] expected temperature to be between 0 and 10000, got 20000.0");
}

}  // namespace
}  // namespace collimate::generate
