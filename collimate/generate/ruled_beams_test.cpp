#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/read_file.h"
#include "collimate/generate/beam_search.h"
#include "collimate/text/regex.h"
#include "tests/support/generate/tiny_service.h"

// Searches beside penalties, biases, stop texts and forms.
namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only

SamplingParams ruled_params(const nlohmann::json& one) {
  SamplingParams params{.max_tokens = one.at("max_new_tokens")};
  params.repetition_penalty = one.value("repetition_penalty", 1.0);
  params.presence_penalty = one.value("presence_penalty", 0.0);
  params.frequency_penalty = one.value("frequency_penalty", 0.0);
  params.min_tokens = one.value("min_tokens", int64_t{0});
  params.stop = one.value("stop", std::vector<std::string>());
  params.regex = one.value("regex", "");
  if (one.contains("logit_bias")) params.logit_bias = parse_logit_bias(one.at("logit_bias")).value();
  return params;
}

BeamParams ruled_beams(const nlohmann::json& one) {
  const nlohmann::json& early = one.at("early_stopping");
  return {.beams = one.at("num_beams"),
          .length_penalty = one.at("length_penalty"),
          .early = early == "never" ? EarlyStopping::kNever
                   : early == true  ? EarlyStopping::kYes
                                    : EarlyStopping::kNo};
}

// Prompts, penalties, biases, least lengths, stop texts and regular expressions, by transformers.
TEST(RuledBeams, FindWhatTransformersFinds) {
  model::Model tiny(model::load_huggingface(COLLIMATE_SOURCE_DIR "/tests/golden/small/models/tiny", "lm", {}, {}), {});
  const auto cases = nlohmann::json::parse(base::read_file(COLLIMATE_SOURCE_DIR "/tests/golden/ruled_beams.json"));
  ASSERT_EQ(cases.size(), 90U);
  const std::vector<std::string> texts = {"a", "b", "ab", "ba", "c"};
  int by_text = 0;
  for (const nlohmann::json& one : cases) {
    const std::vector<int32_t> eos = one.at("eos");
    std::vector<std::string> pieces;
    for (int32_t id = 0; id < tiny.shape().vocabulary; ++id)
      pieces.push_back(std::ranges::count(eos, id) > 0 ? "<eos>" : texts[static_cast<size_t>(id) % texts.size()]);
    const PieceTokenizer tokenizer(pieces);
    const BeamParams beams = ruled_beams(one);
    const std::vector<std::vector<int32_t>> prompts = {one.at("prompt")};
    const auto found =
        beam_all(tiny, prompts, beams, ruled_params(one),
                 {.service = {.eos_ids = eos, .tokenizer = &tokenizer}, .samples_per_prompt = beams.beams});
    ASSERT_EQ(found.size(), static_cast<size_t>(beams.beams));
    for (size_t i = 0; i < one.at("completions").size(); ++i) {
      EXPECT_EQ(found[i].tokens, one.at("completions")[i].get<std::vector<int32_t>>()) << one << i;
      const auto score = one.at("scores")[i].get<float>();
      EXPECT_NEAR(found[i].score, score, 1e-5F * std::max(1.0F, std::abs(score))) << one;
      by_text += found[i].finish == Finish::kStop;
    }
  }
  EXPECT_EQ(by_text, 19);
}

// The pieces "a" and "b" are a token each, so that few completions follow a form, none of which falls behind the ten
// best candidates of a step: all of them are scored here, with a whole forward pass each.
class ExhaustiveBeams : public testing::Test {
 protected:
  ExhaustiveBeams() {
    std::vector<std::string> pieces(61, "x");
    pieces[kA] = "a", pieces[kB] = "b", pieces[2] = "<eos>";
    tokenizer_ = std::make_unique<PieceTokenizer>(pieces);
  }

  struct Scored {
    std::vector<int32_t> tokens;
    double score = 0;
  };

  // The completion of that text, its sum of log-probs after the penalties of what is before each token.
  Scored scored_text(const std::string& text, bool stopped, const SamplingParams& params) {
    Scored one;
    for (const char c : text) one.tokens.push_back(c == 'a' ? kA : kB);
    if (!stopped) one.tokens.push_back(2);
    const Request request{.prompt = prompt_};
    Result result{.tokens = one.tokens};
    const auto bits = scored_bits(tiny_.model, request, result);
    for (size_t i = 0; i < one.tokens.size(); ++i) {
      double log_prob = std::bit_cast<float>(bits[i]);
      const auto before = std::count(one.tokens.begin(), one.tokens.begin() + static_cast<int64_t>(i), one.tokens[i]);
      if (before > 0 || std::ranges::count(prompt_, one.tokens[i]) > 0) log_prob *= params.repetition_penalty;
      if (before > 0) log_prob -= params.presence_penalty;
      one.score += log_prob - static_cast<double>(before) * params.frequency_penalty;
    }
    return one;
  }

  // All texts of "a" and "b" that the expression matches as a whole, or that end in the stop text and begin one.
  std::vector<Scored> all_scored(const SamplingParams& params, size_t longest) {
    std::vector<Scored> all;
    for (size_t length = 1; length <= longest; ++length) {
      for (size_t bits = 0; bits < size_t{1} << length; ++bits) {
        std::string text;
        for (size_t i = 0; i < length; ++i) text += (bits >> i & 1U) != 0 ? 'b' : 'a';
        const std::string& stop = params.stop.front();
        const size_t stops = text.find(stop);
        if (stops != std::string::npos && stops + stop.size() < text.size()) continue;
        text::Span span;
        const std::string form = stops != std::string::npos ? kBeginnings : params.regex;
        if (text::Regex("\\A(?:" + form + ")\\z").find(text, 0, span))
          all.push_back(scored_text(text, stops != std::string::npos, params));
      }
    }
    std::ranges::sort(all, std::ranges::greater(), &Scored::score);
    return all;
  }

  static constexpr int32_t kA = 7, kB = 30;
  static constexpr const char *kForm = "a[ab]{1,2}|b[ab]", *kBeginnings = "a[ab]{0,2}|b[ab]?";
  TinyModel tiny_;
  std::unique_ptr<PieceTokenizer> tokenizer_;
  std::vector<int32_t> prompt_;
};

TEST_F(ExhaustiveBeams, FindTheBestOfAllCompletions) {
  int with_stop = 0;
  for (int trial = 0; trial < 24; ++trial) {
    prompt_.assign(static_cast<size_t>(1 + trial % 5), trial % 2 == 0 ? kA : trial);
    SamplingParams params{.max_tokens = 9, .stop = {trial % 3 == 0 ? "ba" : "abb"}, .regex = kForm};
    params.repetition_penalty = 1.0 + 0.25 * (trial % 3);
    params.presence_penalty = 0.5 * (trial % 4) - 0.5;
    params.frequency_penalty = 0.3 * (trial % 5) - 0.3;
    const std::vector<Scored> all = all_scored(params, 3);
    const BeamParams beams{.beams = 10, .length_penalty = 0, .early = EarlyStopping::kNever};
    const auto found = beam_all(tiny_.model, {&prompt_, 1}, beams, params,
                                {.service = {.tokenizer = tokenizer_.get()}, .samples_per_prompt = 6});
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, all.at(i).tokens) << trial << ", " << i;
      EXPECT_NEAR(found[i].score, all[i].score, 1e-4);
      EXPECT_EQ(found[i].finish, all[i].tokens.back() == 2 ? Finish::kEos : Finish::kStop);
      with_stop += found[i].finish == Finish::kStop;
      const Request request{.prompt = prompt_};
      Result result{.tokens = found[i].tokens};
      for (const float log_prob : found[i].log_probs) result.log_prob_bits.push_back(std::bit_cast<uint32_t>(log_prob));
      EXPECT_EQ(scored_bits(tiny_.model, request, result), result.log_prob_bits);
    }
  }
  EXPECT_GT(with_stop, 20);
}

// Three completions follow the form; a fourth was asked for. No token goes on behind "x" in the other one.
TEST_F(ExhaustiveBeams, WhatIsNotThereIsEmptyWithAReason) {
  prompt_ = {5};
  const EngineOptions options{.service = {.tokenizer = tokenizer_.get()}, .samples_per_prompt = 4};
  const auto found =
      beam_all(tiny_.model, {&prompt_, 1}, {.beams = 4}, {.max_tokens = 9, .regex = "aa|ab|b|abq"}, options);
  ASSERT_EQ(found.size(), 4U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(found[i].finish, Finish::kEos);
  EXPECT_TRUE(found[3].tokens.empty());
  EXPECT_EQ(found[3].finish, Finish::kError);
  EXPECT_EQ(found[3].score, -std::numeric_limits<float>::infinity());
  const auto none = beam_all(tiny_.model, {&prompt_, 1}, {.beams = 4}, {.max_tokens = 9, .regex = "abq"}, options);
  for (const Completion& one : none) EXPECT_EQ(one.finish, Finish::kError);
}

// How many prompts run together and in how many tokens a step changes no bit.
TEST_F(ExhaustiveBeams, SameBitsInAnyBatch) {
  const PieceTokenizer pieces = tiny_tokenizer({"a", "b", "ab", "\xC3", "\xA9", "c", "ba"});
  std::vector<std::vector<int32_t>> prompts;
  for (const int64_t length : {1, 15, 16, 17, 40, 3})
    prompts.emplace_back(static_cast<size_t>(length), static_cast<int32_t>(length));
  SamplingParams params{.max_tokens = 40, .presence_penalty = 0.4, .repetition_penalty = 1.2};
  params.logit_bias = {{9, 2.0}};
  params.stop = {"abba", "é"};
  params.regex = "(?:ab|é|c+)*(?:ba){1,3}";
  const auto search = [&](int64_t tokens) {
    EngineOptions options{.service = {.tokenizer = &pieces}, .samples_per_prompt = 3};
    options.service.max_batch_tokens = options.service.max_batch_sequences = tokens;
    return beam_all(tiny_.model, prompts, {.beams = 4}, params, options);
  };
  const auto whole = search(500);
  for (const int64_t tokens : {4, 7, 50}) {
    const auto same = search(tokens);
    ASSERT_EQ(same.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(same[i].tokens, whole[i].tokens);
      EXPECT_EQ(same[i].score, whole[i].score);
      EXPECT_EQ(same[i].finish, whole[i].finish);
    }
  }
}

}  // namespace
}  // namespace collimate::generate
