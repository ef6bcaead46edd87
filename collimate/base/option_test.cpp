#include "collimate/base/option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/json_text.h"
#include "tests/support/base/error_of.h"

namespace collimate::base {
namespace {

using ::testing::ElementsAre;

struct RolloutOptions : Section {
  Option<int64_t> samples{this, "samples_per_prompt", 8, "samples", "completions drawn per prompt", at_least(1)};
  Option<double> temperature{this, "temperature", 1.0, "", "divides the logits", between(0.0, 10.0)};
  Option<std::vector<std::string>> stop{this, "stop", {}, "", "strings that end a completion", not_empty()};
};

// Members called like the machinery's own words must not collide with it.
struct AwkwardOptions : Section {
  Option<std::string> name{this, "name", "n", "", ""};
  Option<int64_t> value{this, "value", 3, "", ""};
  Option<std::string> path{this, "path", "", "", ""};
  Option<std::string> help{this, "help", "", "", ""};
  Option<std::string> parent{this, "parent", "", "", ""};
  Nested<RolloutOptions> check{this, "check", ""};
};

struct RootOptions : Section {
  Option<bool> fast{this, "fast", false, "", ""};
  Nested<RolloutOptions> rollout{this, "rollout", "how completions are made"};
  Nested<AwkwardOptions> awkward{this, "awkward", ""};
  SectionMap<RolloutOptions> models{this, "models", ""};
};

void read(Section& section, const std::string& yaml) { apply(parse_config(yaml, "c.yaml"), section); }

// Returns the error that a configuration of these options gets, or "" where it is right.
template <class Options>
std::string refusal_of(const std::string& yaml) {
  Options options;
  return message_of([&] { read(options, yaml); });
}

TEST(Option, SaysWhichOtherOneSwitchesItOn) {
  struct Options : Section {
    Option<int64_t> rank{this, "rank", 0, "", ""};
    Option<double> alpha{this, "alpha", 2.0, "", "", only_with{"rank"}};
    Option<double> floor{this, "floor",
                         0.1,  "",
                         "",   only_with{"schedule", [](const nlohmann::json& value) { return value == "cosine"; }}};
  };
  std::vector<OptionInfo> infos;
  Options().describe_section("lora", infos);
  EXPECT_EQ(infos.at(0).read.option, "");
  EXPECT_EQ(infos.at(1).read.option, "rank");
  for (const nlohmann::json& off :
       {nlohmann::json(), nlohmann::json(0), nlohmann::json(0.0), nlohmann::json(false), nlohmann::json("off")})
    EXPECT_FALSE(infos.at(1).read.on(off)) << off;
  for (const nlohmann::json& on : {nlohmann::json(8), nlohmann::json(1e-3), nlohmann::json(true), nlohmann::json("k1")})
    EXPECT_TRUE(infos.at(1).read.on(on)) << on;
  EXPECT_EQ(infos.at(2).read.option, "schedule");
  EXPECT_TRUE(infos.at(2).read.on("cosine"));
  EXPECT_FALSE(infos.at(2).read.on("linear"));
}

TEST(Option, HasAPartThatTheHashReads) {
  struct Options : Section {
    Option<nlohmann::json> list{
        this, "list", nlohmann::json::array(), "", "", hashed_part<nlohmann::json>{[](const nlohmann::json& value) {
          return value.is_array() && !value.empty() ? value[0] : value;
        }}};
  };
  const auto hash = [](const char* yaml) {
    Options options;
    read(options, yaml);
    return config_hash(options);
  };
  EXPECT_EQ(hash("list: [1, 2]"), hash("list: [1, 3]"));
  EXPECT_NE(hash("list: [1, 2]"), hash("list: [2, 2]"));
}

TEST(Option, ReadsAsItsValue) {
  RootOptions root;
  const int64_t samples = root.rollout.samples;
  EXPECT_EQ(samples, 8);
  EXPECT_EQ(root.rollout.samples * 2, 16);
  EXPECT_TRUE(root.awkward.name == "n");
  EXPECT_EQ(fmt::format("{}", root.rollout.temperature), "1");
  root.rollout.samples = 3;
  EXPECT_EQ(root.rollout.samples, 3);
  EXPECT_EQ(root.awkward.value, 3);
  EXPECT_EQ(root.awkward.check.samples, 8);
}

struct SchemaOptions : Section {
  Option<JsonText> schema{this, "schema", {}, "", ""};
};

// A mapping's keys stay in the order written, and what a resolved configuration says is read again.
TEST(Option, AMappingIsTheTextOfItsJson) {
  SchemaOptions options;
  read(options, "schema: {type: object, properties: {z: {enum: [1, 2.5, '3', true, null]}, a: {}}}");
  const std::string json = R"({"type":"object","properties":{"z":{"enum":[1,2.5,"3",true,null]},"a":{}}})";
  EXPECT_EQ(options.schema->text, json);
  SchemaOptions again;
  read(again, resolved_config(options));
  EXPECT_EQ(again.schema->text, json);
  read(again, "schema: some/file.json");
  EXPECT_EQ(again.schema->text, "some/file.json");
  EXPECT_EQ(refusal_of<SchemaOptions>("schema: [1]"),
            "[c.yaml:1] expected schema to be a string or a mapping, got a list");
  EXPECT_EQ(refusal_of<SchemaOptions>("schema: {maximum: .inf}"),
            "[c.yaml:1] expected finite numbers in schema, got .inf");
}

struct RangeOptions : Section {
  Option<int64_t> least{this, "min", 0, "", "", at_least(0)};
  Option<int64_t> most{this, "max", 5, "", ""};

  void section_demands(const std::string& path) const override {
    if (least > most) least.item_refuse(path, fmt::format("at most max, {}", most));
    if (most == 13) most.item_refuse(path, "a lucky number", "it is 13");
  }
};

TEST(Option, WhatASectionDemandsOfItsOptionsTogetherNamesTheirPlace) {
  struct Parent : Section {
    Nested<RangeOptions> words{this, "words", ""};
    SectionMap<RangeOptions> more{this, "more", ""};
  };
  EXPECT_EQ(refusal_of<Parent>("words: {min: 2, max: 2}"), "");
  EXPECT_EQ(refusal_of<Parent>("words:\n  max: 2\n  min: 3"),
            "[c.yaml:3] expected words.min to be at most max, 2, got 3");
  EXPECT_EQ(refusal_of<Parent>("words: {min: -3}"), "[c.yaml:1] expected words.min to be at least 0, got -3");
  EXPECT_EQ(refusal_of<Parent>("more: {a: {}, b: {max: 13}}"),
            "[c.yaml:1] expected more.b.max to be a lucky number, got 13 (it is 13)");
  RangeOptions from_code;
  from_code.least = 6;
  EXPECT_EQ(message_of([&] { from_code.check_section("words"); }),
            "[configuration] expected words.min to be at most max, 5, got 6");
}

TEST(Option, CopiesAreIndependent) {
  RootOptions root;
  read(root, "models: {policy: {samples_per_prompt: 2}}");
  RootOptions copy = root;
  read(copy,
       "rollout: {samples_per_prompt: 5}\nmodels: {policy: {samples_per_prompt: 9}}\nawkward: {check: {temperature: "
       "2}}");
  EXPECT_EQ(root.rollout.samples, 8);
  EXPECT_EQ(root.models.find("policy")->samples, 2);
  EXPECT_EQ(copy.rollout.samples, 5);
  EXPECT_EQ(copy.models.find("policy")->samples, 9);
  EXPECT_EQ(copy.awkward.check.temperature, 2.0);
  root = copy;
  EXPECT_EQ(root.rollout.samples, 5);
  read(root, "rollout: {samples_per_prompt: 6}");
  EXPECT_EQ(root.rollout.samples, 6);
  EXPECT_EQ(copy.rollout.samples, 5);
  const RolloutOptions part = root.rollout;
  EXPECT_EQ(part.samples, 6);
}

TEST(Option, MapsOfSectionsKeepTheirOrder) {
  RootOptions root;
  read(root, "models: {zeta: {temperature: 2}, alpha: {}}");
  ASSERT_EQ(root.models.size(), 2u);
  EXPECT_EQ(root.models.begin()->first, "zeta");
  EXPECT_EQ(root.models.find("zeta")->temperature, 2.0);
  EXPECT_EQ(root.models.find("absent"), nullptr);
}

TEST(Option, RemembersWhereItWasSet) {
  RootOptions root;
  read(root, "fast: true\n\nrollout:\n  temperature: 0.5\n");
  EXPECT_EQ(root.rollout.temperature.where(), "c.yaml:4");
  EXPECT_EQ(root.rollout.samples.where(), "");
  read(root, "models:\n  policy: {}\n\n  value:\n    temperature: 2\n");
  EXPECT_EQ(root.models.where("policy"), "c.yaml:2");
  EXPECT_EQ(root.models.where("value"), "c.yaml:4");
  root.models["added"];
  for (const char* name : {"added", "absent"}) EXPECT_EQ(root.models.where(name), "") << name;
  read(root, "models: {value: {}}");
  EXPECT_EQ(root.models.where("value"), "c.yaml:1");
  EXPECT_EQ(root.models.where("policy"), "c.yaml:2");
}

TEST(Option, ChecksHoldOfEveryEntryAndOfAnOptional) {
  struct Options : Section {
    Option<std::vector<double>> betas{this, "betas", {0.9, 0.95}, "", "", below(1.0), at_least_entries{1}};
    Option<std::optional<int64_t>> limit{this, "limit", std::nullopt, "", "", at_least(1)};
    Option<double> rate{this, "rate", 0.1, "", "", above(0.0)};
  } options;
  read(options, "betas: 0.5\nlimit: 4");
  EXPECT_THAT(options.betas.get(), ElementsAre(0.5));
  EXPECT_EQ(options.limit.get(), 4);
  read(options, "limit: null");
  EXPECT_EQ(options.limit.get(), std::nullopt);
  for (const char* wrong : {"betas: [0.5, 1.0]", "betas: []", "limit: 0", "rate: .nan"})
    EXPECT_THROW(read(options = Options(), wrong), InputError) << wrong;
}

TEST(Option, NumbersAreFinite) {
  struct Options : Section {
    Option<double> rate{this, "rate", 0.1, "", ""};
    Option<std::optional<double>> limit{this, "limit", std::nullopt, "", ""};
    Option<std::vector<double>> betas{this, "betas", {}, "", ""};
  };
  EXPECT_EQ(refusal_of<Options>("rate: .inf"), "[c.yaml:1] expected rate to be a finite number, got .inf");
  EXPECT_EQ(refusal_of<Options>("rate: -.inf"), "[c.yaml:1] expected rate to be a finite number, got -.inf");
  EXPECT_EQ(refusal_of<Options>("limit: .nan"), "[c.yaml:1] expected limit to be a finite number, got .nan");
  EXPECT_EQ(refusal_of<Options>("betas: [0.5, .inf]"), "[c.yaml:1] expected betas.1 to be a finite number, got .inf");
  EXPECT_EQ(refusal_of<Options>("rate: 1e300"), "");
}

TEST(Option, AssignedValuesAreCheckedOnRequest) {
  RootOptions root;
  root.rollout.samples = 0;
  EXPECT_EQ(message_of([&] { root.check_section(); }),
            "[configuration] expected rollout.samples_per_prompt to be at least 1, got 0");
}

}  // namespace
}  // namespace collimate::base
