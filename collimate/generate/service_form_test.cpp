#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/text/regex.h"
#include "tests/support/base/error_of.h"
#include "tests/support/generate/tiny_service.h"

// Requests whose completions have to be something: what a regular expression matches, or JSON of a schema.
namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only
using testing::HasSubstr;

bool matches_whole(const std::string& regex, const std::string& text) {
  text::Span found;
  return text::Regex("\\A(?:" + regex + ")\\z").find(text, 0, found);
}

class ServiceForm : public testing::Test {
 protected:
  ServiceForm() {
    options_.seed = 5;
    options_.tokenizer = &tokenizer_;
  }

  // As many requests of one prompt, with a length that most of them need not.
  std::vector<Request> requests(const SamplingParams& params, int64_t count = 24) {
    std::vector<Request> all(static_cast<size_t>(count), {.prompt = {5, 9, 40}, .params = params});
    for (int64_t i = 0; i < count; ++i) base::at(all, i).uid = i;
    return all;
  }
  std::string text_of(const Result& result) const { return tokenizer_.decode(result.tokens); }
  std::string refusal(const SamplingParams& params) {
    Service service(tiny_.model, options_);
    return base::message_of([&] { service.submit(to_batch(requests(params, 1))); });
  }

  TinyModel tiny_;
  PieceTokenizer tokenizer_ = tiny_tokenizer({"a", "b", "ab", "\xC3", "\xA9", "c", "ba",     "{", "}",  "\"",
                                              ":", "1", "[",  "]",    ",",    "-", "\"a\":", "0", ".5", "true"});
  ServiceOptions options_;
};

TEST_F(ServiceForm, CompletionsMatchTheRegex) {
  for (const char* regex : {"(?:ab|é|c+)*(?:ba){1,3}", "a{3,5}", "[^a]{4}", "c|\\{\\}"}) {
    for (const double temperature : {1.0, 0.0, 3.0}) {
      const auto all = requests({.max_tokens = 60, .temperature = temperature, .regex = regex});
      const Results results = run_all(tiny_.model, all, options_);
      int ended = 0;
      for (const auto& [uid, result] : results) {
        ended += result.finish == Finish::kEos;
        EXPECT_TRUE(result.finish != Finish::kEos || matches_whole(regex, text_of(result))) << text_of(result);
        EXPECT_TRUE(result.finish == Finish::kEos || result.tokens.size() == 60U);
      }
      EXPECT_GT(ended, 12) << regex;
      expect_scored(tiny_.model, all, results);  // the log-probs are the model's own, as in training
    }
  }
}

TEST_F(ServiceForm, CompletionsAreJsonOfTheSchema) {
  const char* schema = R"({"type": "object", "properties": {"a": {"type": "integer", "minimum": -11, "maximum": 11},
    "b": {"type": "array", "items": {"type": "boolean", "const": true}, "maxItems": 2}}, "required": ["a"],
    "additionalProperties": false, "x-guidance": {"whitespace_flexible": false}})";
  const Results results = run_all(tiny_.model, requests({.max_tokens = 60, .json_schema = schema}), options_);
  for (const auto& [uid, result] : results) {
    ASSERT_EQ(result.finish, Finish::kEos) << text_of(result);
    const auto document = nlohmann::json::parse(text_of(result));
    EXPECT_LE(std::abs(document.at("a").get<int>()), 11);
    EXPECT_EQ(document.size(), 1U + document.contains("b"));
  }
}

TEST_F(ServiceForm, SameBitsAloneInAnyBatchWithGuessesAndInTheMiddle) {
  std::vector<Request> all = requests({.max_tokens = 40, .regex = "(?:ab|é|c+)*(?:ba){1,3}"});
  for (Request& request : all) {
    request.params.temperature = request.uid % 3 == 0 ? 0.0 : 1.0;
    if (request.uid % 4 == 0) request.params.regex = "(?:ab)*c";
    if (request.uid % 5 == 0) request.params.regex.clear();
  }
  const Results alone = run_each(tiny_.model, all, options_);
  EXPECT_EQ(run_all(tiny_.model, all, options_), alone);
  TinyModel draft(2);
  for (model::Model* guesser : {static_cast<model::Model*>(nullptr), &draft.model, &tiny_.model}) {
    ServiceOptions guessing = options_;
    guessing.speculation_tokens = 6;
    guessing.speculation_rows = 64;
    guessing.max_batch_sequences = 4;
    guessing.draft = guesser;
    const Outcome outcome = run_counted(tiny_.model, all, guessing);
    EXPECT_EQ(outcome.results, alone);
    EXPECT_GT(outcome.stats.accepted_tokens, 0);
  }
  for (const int steps : {1, 4, 9}) EXPECT_EQ(results_over_a_load(steps, tiny_.model, all, options_), alone) << steps;
}

// No token of this vocabulary is an x: what begins well ends when no token can go on.
TEST_F(ServiceForm, WhatCannotGoOnEndsWithAReasonOfItsOwn) {
  const Results results = run_all(tiny_.model, requests({.max_tokens = 9, .regex = "ab{1,2}x"}), options_);
  for (const auto& [uid, result] : results) {
    EXPECT_EQ(result.finish, Finish::kError);
    EXPECT_THAT(text_of(result), testing::AnyOf("ab", "abb"));
  }
  EXPECT_STREQ(finish_reason(Finish::kError), "error");
  EXPECT_TRUE(cut_off(Finish::kError));
}

TEST_F(ServiceForm, RefusesWhatCannotBe) {
  const std::string regex = "a+";
  EXPECT_EQ(refusal({.regex = regex}), "");
  EXPECT_EQ(refusal({.regex = regex, .json_schema = "{}"}),
            "[generate.submit, row 0] expected one of regex and json_schema, got both");
  EXPECT_EQ(refusal({.min_tokens = 2, .regex = regex}),
            "[generate.submit, row 0] expected min_tokens: 0 beside regex, got 2; try what is as long as it has to be");
  EXPECT_THAT(refusal({.ignore_eos = true, .regex = regex}), HasSubstr("expected ignore_eos: false"));
  EXPECT_THAT(refusal({.regex = "a(?=b)"}), HasSubstr("[generate.submit, row 0, regex] expected a regular expression"));
  EXPECT_THAT(refusal({.json_schema = R"({"not": {}})"}), HasSubstr("row 0, json_schema] expected a JSON schema"));
  options_.eos_ids = {70};
  EXPECT_THAT(refusal({.regex = regex}), HasSubstr("an end-of-sequence token"));
  options_.eos_ids.clear();
  options_.tokenizer = nullptr;
  EXPECT_EQ(refusal({.regex = regex}),
            "[generate.submit, row 0] expected no regex, as the service has no tokenizer, got one; try a service with "
            "one");
}

}  // namespace
}  // namespace collimate::generate
