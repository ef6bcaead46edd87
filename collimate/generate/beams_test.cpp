#include "collimate/generate/beams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "collimate/base/config.h"
#include "collimate/base/read_file.h"
#include "collimate/generate/beam_options.h"
#include "collimate/generate/beam_search.h"
#include "tests/support/base/error_of.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only
using testing::HasSubstr;

BeamParams beams_of(const nlohmann::json& given) {
  struct Section : base::Section {
    BeamOptions beams{this};
  } section;
  base::apply(given, "test", section);
  return section.beams.params();
}

// Prompts, lengths, penalties, ways to stop and end tokens, by transformers.
TEST(BeamSearch, FindsWhatTransformersFinds) {
  model::Model tiny(model::load_huggingface(COLLIMATE_SOURCE_DIR "/tests/golden/small/models/tiny", "lm", {}, {}), {});
  const auto cases = nlohmann::json::parse(base::read_file(COLLIMATE_SOURCE_DIR "/tests/golden/beams.json"));
  ASSERT_EQ(cases.size(), 80U);
  for (const nlohmann::json& one : cases) {
    const BeamParams beams = beams_of({{"num_beams", one.at("num_beams")},
                                       {"length_penalty", one.at("length_penalty")},
                                       {"early_stopping", one.at("early_stopping")}});
    const std::vector<std::vector<int32_t>> prompts = {one.at("prompt")};
    const auto found = beam_all(tiny, prompts, beams, {.max_tokens = one.at("max_new_tokens")},
                                {.service = {.eos_ids = one.at("eos")}, .samples_per_prompt = beams.beams});
    ASSERT_EQ(found.size(), one.at("completions").size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, one.at("completions")[i].get<std::vector<int32_t>>()) << one << i;
      const auto score = one.at("scores")[i].get<float>();
      EXPECT_NEAR(found[i].score, score, 1e-5F * std::max(1.0F, std::abs(score))) << one;
    }
  }
}

class TinyBeams : public testing::Test {
 protected:
  TinyBeams() {
    for (int64_t length : {1, 15, 16, 17, 40, 3})
      prompts_.emplace_back(static_cast<size_t>(length), static_cast<int32_t>(length));
  }
  std::vector<Completion> search(const BeamParams& beams, const SamplingParams& params, EngineOptions options = {},
                                 const EngineListener& listener = {}) {
    return beam_all(tiny_.model, prompts_, beams, params, std::move(options), listener);
  }
  std::string refusal(const BeamParams& beams, const SamplingParams& params, EngineOptions options = {}) {
    return base::message_of([&] { search(beams, params, std::move(options)); });
  }

  TinyModel tiny_;
  std::vector<std::vector<int32_t>> prompts_;
};

// One beam is greedy decoding, with its log-probs in bits.
TEST_F(TinyBeams, OneBeamIsGreedy) {
  const SamplingParams greedy{.max_tokens = 30, .temperature = 0};
  const auto drawn = generate_all(tiny_.model, prompts_, greedy);
  const auto found = search({}, greedy);
  ASSERT_EQ(found.size(), drawn.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, drawn[i].tokens);
    EXPECT_EQ(found[i].log_probs, drawn[i].log_probs);
    EXPECT_EQ(found[i].finish, drawn[i].finish);
    EXPECT_EQ(found[i].uid, drawn[i].uid);
  }
}

// Each has the log-probs that scoring computes, and a score that they add up to; how many prompts run together, and in
// how many tokens a step, changes nothing.
TEST_F(TinyBeams, SameBitsInAnyBatchAndAsScoring) {
  const BeamParams beams{.beams = 4, .length_penalty = 0.5};
  const SamplingParams params{.max_tokens = 40, .stop_ids = {7, 8}};
  const EngineOptions options{.samples_per_prompt = 3};
  int64_t peak = 0;
  const auto whole =
      search(beams, params, options, {.on_progress = [&](const Progress& p) { peak = p.service.blocks_peak; }});
  ASSERT_EQ(whole.size(), prompts_.size() * 3);
  for (size_t i = 0; i < whole.size(); ++i) {
    const Completion& one = whole[i];
    EXPECT_EQ(one.prompt, static_cast<int64_t>(i / 3));
    if (i % 3 > 0) {
      EXPECT_LE(one.score, whole[i - 1].score);
    }
    const Request request{.prompt = prompts_[i / 3]};
    Result result{.tokens = one.tokens};
    for (const float log_prob : one.log_probs) result.log_prob_bits.push_back(std::bit_cast<uint32_t>(log_prob));
    EXPECT_EQ(scored_bits(tiny_.model, request, result), result.log_prob_bits);
    double sum = 0;
    for (const float log_prob : one.log_probs) sum += log_prob;
    EXPECT_NEAR(one.score, sum / std::sqrt(static_cast<double>(one.tokens.size())), 1e-4);
    EXPECT_EQ(one.finish, one.tokens.back() == 2                             ? Finish::kEos
                          : one.tokens.back() == 7 || one.tokens.back() == 8 ? Finish::kStop
                                                                             : Finish::kLength);
  }
  for (const int64_t tokens : {4, 7, 50}) {
    EngineOptions small = options;
    small.service.max_batch_tokens = tokens;
    small.service.max_batch_sequences = tokens;
    const auto same = search(beams, params, small);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(same[i].tokens, whole[i].tokens);
      EXPECT_EQ(same[i].score, whole[i].score);
    }
  }
  EngineOptions later = options;
  later.first_completion = 7;
  std::vector<int64_t> told;
  const auto rest =
      search(beams, params, later, {.on_completion = [&](const Completion& one) { told.push_back(one.uid); }});
  ASSERT_EQ(rest.size(), whole.size() - 7);
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].tokens, whole[i + 7].tokens);
    EXPECT_EQ(told.at(i), whole[i + 7].uid);
  }
  // Four beams of 40 tokens after the prompts' 92: without sharing they would need 4 * 22 blocks at least.
  EXPECT_LT(peak, 80);
}

// Three of four beams are copies of the one that read the prompt.
TEST_F(TinyBeams, CountsThePromptThatBeamsShare) {
  for (const auto& [length, tokens] : {std::pair<int64_t, int64_t>{3, 2}, {17, 2}, {40, 2}, {17, 12}}) {
    prompts_.assign(1, std::vector<int32_t>(static_cast<size_t>(length), 5));
    ServiceStats stats;
    search({.beams = 4}, {.max_tokens = tokens}, {}, {.on_progress = [&](const Progress& p) { stats = p.service; }});
    EXPECT_EQ(stats.prefill_tokens, length);
    EXPECT_EQ(stats.shared_prompt_tokens, 3 * length);
  }
}

// A prompt of 17 tokens and the 15 of 16 that are run fill two blocks for each beam, of which beams that share their
// beginnings need fewer. The whole context has 10 blocks.
TEST_F(TinyBeams, TheCacheHoldsWhatBeamsCanReachAndNoMore) {
  for (const auto& [length, tokens, blocks] : {std::tuple{17, 16, 2}, {16, 1, 1}, {16, 2, 2}, {5, 500, 10}}) {
    prompts_.assign(1, std::vector<int32_t>(static_cast<size_t>(length), 5));
    for (const int64_t beams : {1, 2, 4}) {
      ServiceStats stats;
      const auto found = search({.beams = beams}, {.max_tokens = tokens, .ignore_eos = true}, {},
                                {.on_progress = [&](const Progress& p) { stats = p.service; }});
      EXPECT_EQ(std::ssize(found.at(0).tokens), std::min(tokens, 160 - length));
      EXPECT_EQ(stats.blocks, beams * blocks);
      EXPECT_GE(stats.blocks_peak, blocks);
    }
  }
}

// Two beams of a prompt of 40 tokens and 20 more, the last of which is not run, need 2 * 4 blocks. Prompts take turns
// where there are no more, and find the same.
TEST_F(TinyBeams, TakesNoMoreBlocksThanWereAskedFor) {
  const BeamParams beams{.beams = 2};
  const SamplingParams params{.max_tokens = 20, .ignore_eos = true};
  const auto whole = search(beams, params);
  for (const int64_t blocks : {8, 15, 16, 30}) {
    ServiceStats stats;
    const auto found = search(beams, params, {.service = {.cache_blocks = blocks}},
                              {.on_progress = [&](const Progress& p) { stats = p.service; }});
    EXPECT_EQ(stats.blocks, blocks / 8 * 8);
    ASSERT_EQ(found.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(found[i].tokens, whole[i].tokens) << blocks;
      EXPECT_EQ(found[i].score, whole[i].score) << blocks;
    }
  }
  EXPECT_EQ(refusal(beams, params, {.service = {.cache_blocks = 7}}),
            "[generate.cache_blocks] expected at least 8, for 2 beams of up to 64 tokens, got 7; try cache_blocks: 8, "
            "fewer beams or fewer max_tokens");
}

TEST_F(TinyBeams, RefusesWhatASearchDoesNotRead) {
  const BeamParams two{.beams = 2};
  EXPECT_EQ(
      refusal(two, {.max_tokens = 2, .temperature = 0.5}),
      "[generate.num_beams] expected 1 beside temperature, which a search does not read, got temperature: 0.5; try "
      "leaving one of them out");
  EXPECT_THAT(refusal(two, {.max_tokens = 2, .top_k = 5}), HasSubstr("top_k: 5"));
  EXPECT_THAT(refusal(two, {.max_tokens = 2, .seed = 5}), HasSubstr("seed: 5"));
  EXPECT_THAT(refusal(two, {.max_tokens = 2, .top_log_probs = 1}), HasSubstr("top_logprobs"));
  EXPECT_THAT(refusal(two, {.max_tokens = 2, .timeout_seconds = 3}), HasSubstr("timeout_seconds"));
  EXPECT_EQ(refusal(two, {.max_tokens = 2, .regex = "a"}),
            "[generate] expected no regex, as the service has no tokenizer, got one; try a service with one");
  EXPECT_THAT(refusal(two, {.max_tokens = 2, .stop = {"a"}}), HasSubstr("no stop strings"));
  EXPECT_THAT(refusal(two, {.max_tokens = 2, .logit_bias = {{61, 1.0}}}), HasSubstr("token ids in [0, 61), got 61"));
  EXPECT_EQ(refusal({.beams = 11}, {.max_tokens = 2}),
            "[generate.num_beams] expected 1 to 10 beams, with 1 tokens that end a completion, got 11");
  EXPECT_THAT(refusal({.beams = 7}, {.max_tokens = 2, .stop_ids = {5}}), HasSubstr("1 to 6 beams"));
  EXPECT_EQ(refusal(two, {.max_tokens = 2}, {.samples_per_prompt = 3}),
            "[generate.n] expected 1 to 2 completions of a prompt, as num_beams is 2, got 3; try num_beams: 3");
  EXPECT_THAT(refusal(two, {.max_tokens = 2}, {.service = {.speculation_tokens = 3}}), HasSubstr("speculation"));
  const auto without_beams = [&](const BeamParams& beams) {
    return base::message_of([&] { complete_all(tiny_.model, prompts_, beams, {.max_tokens = 1}); });
  };
  EXPECT_THAT(without_beams({.length_penalty = 2}), HasSubstr("at least 2 beside length_penalty"));
  EXPECT_THAT(without_beams({.early = EarlyStopping::kYes}), HasSubstr("early_stopping"));
  EXPECT_EQ(without_beams({}), "");
  prompts_.emplace_back();
  EXPECT_THAT(refusal(two, {.max_tokens = 2}), HasSubstr("prompt 6] expected a prompt of at least 1 token"));
  prompts_.back() = {61};
  EXPECT_THAT(refusal(two, {.max_tokens = 2}), HasSubstr("token ids in [0, 61), got 61"));
  prompts_.back().assign(160, 3);
  EXPECT_THAT(refusal(two, {.max_tokens = 2}), HasSubstr("a prompt of at most 159 tokens, got 160"));
}

TEST(BeamOptions, EarlyStoppingIsOneOfThree) {
  EXPECT_EQ(beams_of(nlohmann::json::object()).early, EarlyStopping::kNo);
  EXPECT_EQ(beams_of({{"early_stopping", true}}).early, EarlyStopping::kYes);
  EXPECT_EQ(beams_of({{"early_stopping", "never"}}).early, EarlyStopping::kNever);
  EXPECT_THAT(base::message_of([] { beams_of({{"early_stopping", "later"}}); }), HasSubstr("true, false or never"));
}

}  // namespace
}  // namespace collimate::generate
