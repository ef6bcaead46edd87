#include "collimate/generate/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"

namespace collimate::generate {
namespace {

std::string message_of(const char* text) {
  try {
    SamplingParams::from_json(nlohmann::json::parse(text));
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SamplingParams, RoundTrip) {
  SamplingParams params;
  params.max_tokens = 7;
  params.temperature = 0.3;
  params.top_p = 0.9;
  params.top_k = 5;
  params.min_p = 0.01;
  params.ignore_eos = true;
  params.stop_ids = {3, 4};
  params.seed = 0xFFFFFFFFFFFFFFFFULL;
  const auto json = params.to_json();
  EXPECT_EQ(SamplingParams::from_json(json).to_json(), json);
  EXPECT_NE(SamplingParams().to_json(), json);
  EXPECT_EQ(SamplingParams::from_json(json).seed, params.seed);
}

TEST(SamplingParams, ErrorsNameTheKey) {
  EXPECT_EQ(message_of(R"({"top_p": 0})"), "[sampling.top_p] expected a number in (0, 1], got 0");
  EXPECT_EQ(message_of(R"({"max_tokens": 0})"), "[sampling.max_tokens] expected an integer >= 1, got 0");
  EXPECT_EQ(message_of(R"({"temperature": "hot"})"),
            "[sampling.temperature] expected a number in [0, 10000], got \"hot\"");
  EXPECT_EQ(message_of(R"({"stop_ids": [-1]})"), "[sampling.stop_ids] expected an integer >= 0, got -1");
  EXPECT_THAT(message_of(R"({"top_n": 1})"), testing::HasSubstr("top_k"));
  EXPECT_THAT(message_of(R"({"top_n": 1})"), testing::HasSubstr("got top_n"));
  EXPECT_EQ(message_of("[]"), "[sampling] expected an object, got []");
}

}  // namespace
}  // namespace collimate::generate
