#include "collimate/generate/model_sampling.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::generate {
namespace {

using testing::HasSubstr;

// Takes what `text` says, as a model's generation_config.json, into `options`.
ModelSampling taken(const std::string& text, SamplingOptions& options) {
  const base::TemporaryDirectory directory;
  std::ofstream(directory.path("generation_config.json")) << text;
  return take_model_sampling(directory.path(), options);
}

TEST(ModelSampling, GivesTheValuesOfOptionsThatNobodySet) {
  SamplingOptions options;
  base::apply(nlohmann::json{{"top_p", 1.0}}, "--top-p", options);
  const ModelSampling model = taken(
      R"({"temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05, "do_sample": true,
          "max_new_tokens": 7, "eos_token_id": [1, 2], "typical_p": null})",
      options);
  const SamplingParams params = options.values();
  EXPECT_EQ(params.temperature, 0.6);
  EXPECT_EQ(params.top_p, 1.0);  // set by a flag, to the default
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.min_p, 0.05);
  EXPECT_EQ(params.repetition_penalty, 1.05);
  EXPECT_EQ(params.max_tokens, SamplingParams().max_tokens);
  EXPECT_EQ(model.values, "temperature 0.6, top_k 20, min_p 0.05, repetition_penalty 1.05");
  EXPECT_THAT(model.file, HasSubstr("generation_config.json"));
}

TEST(ModelSampling, NothingIsSetWhereTheFileSaysNothing) {
  SamplingOptions options;
  EXPECT_EQ(taken(R"({"eos_token_id": 2, "temperature": null, "top_k": null, "do_sample": null})", options).values, "");
  const base::TemporaryDirectory empty;
  EXPECT_EQ(take_model_sampling(empty.path(), options).values, "");
  EXPECT_EQ(options.values().to_json(), SamplingParams().to_json());
}

TEST(ModelSampling, WithoutSamplingTheMostLikelyTokenIsTaken) {
  SamplingOptions options;
  EXPECT_EQ(taken(R"({"do_sample": false, "temperature": 0.6, "top_k": -1})", options).values,
            "temperature 0.0, top_k 0");
  EXPECT_EQ(options.values().temperature, 0.0);
}

TEST(ModelSampling, AWrongValueIsAnErrorThatNamesFileAndKey) {
  const auto error = [](const std::string& text) {
    SamplingOptions options;
    return base::message_of([&] { taken(text, options); });
  };
  for (const auto& [text, key] : {std::pair(R"({"temperature": -1})", "temperature to be"),
                                  {R"({"top_p": "0.9"})", "top_p to be a number"},
                                  {R"({"top_k": 2.5})", "top_k to be an integer"},
                                  {R"({"repetition_penalty": 0})", "repetition_penalty to be"},
                                  {R"({"do_sample": "yes"})", "do_sample to be true or false"},
                                  {"[1]", "a JSON object"}})
    EXPECT_THAT(error(text), testing::AllOf(HasSubstr(fmt::format("generation_config.json] expected {}", key)),
                                            HasSubstr("; try ")));
}

}  // namespace
}  // namespace collimate::generate
