#include "collimate/generate/engine.h"

#include <gtest/gtest.h>

#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

TEST(GenerateAll, OrderedByPromptThenSampleWhateverTheBatch) {
  testing_support::TinyModel tiny;
  std::vector<std::vector<int32_t>> prompts;
  for (int32_t i = 0; i < 5; ++i) prompts.emplace_back(3 + 9 * i, i);
  SamplingParams params;
  params.max_tokens = 12;
  EngineOptions options;
  options.samples_per_prompt = 3;
  Progress last;
  const auto completions = generate_all(tiny.model, prompts, params, options,
                                        {.on_progress = [&](const Progress& progress) { last = progress; }});
  ASSERT_EQ(completions.size(), 15U);
  int64_t tokens = 0;
  for (size_t i = 0; i < completions.size(); ++i) {
    EXPECT_EQ(completions[i].prompt, static_cast<int64_t>(i / 3));
    EXPECT_EQ(completions[i].sample, static_cast<int64_t>(i % 3));
    EXPECT_NE(completions[i].finish, Finish::kRunning);
    EXPECT_EQ(completions[i].tokens.size(), completions[i].log_probs.size());
    tokens += static_cast<int64_t>(completions[i].tokens.size());
  }
  EXPECT_EQ(last.finished, 15);
  EXPECT_EQ(last.total, 15);
  EXPECT_EQ(last.tokens, tokens);

  options.service.max_batch_sequences = 2;
  options.service.max_batch_tokens = 7;
  const auto narrow = generate_all(tiny.model, prompts, params, options);
  for (size_t i = 0; i < narrow.size(); ++i) {
    EXPECT_EQ(narrow[i].tokens, completions[i].tokens);
    EXPECT_EQ(narrow[i].log_probs, completions[i].log_probs);
  }
}

TEST(GenerateAll, GoesOnBehindACompletionWithTheSameDraws) {
  testing_support::TinyModel tiny;
  const std::vector<std::vector<int32_t>> prompts = {{5, 6}, {7}, {8, 9, 10}};
  SamplingParams params;
  params.max_tokens = 9;
  EngineOptions options;
  options.samples_per_prompt = 2;
  std::vector<Completion> told;
  const auto whole = generate_all(tiny.model, prompts, params, options,
                                  {.on_completion = [&](const Completion& c) { told.push_back(c); }});
  ASSERT_EQ(told.size(), 6U);
  for (size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].uid, whole[i].uid) << "told in order";
  options.first_completion = 3;
  const auto rest = generate_all(tiny.model, prompts, params, options);
  ASSERT_EQ(rest.size(), 3U);
  for (size_t i = 0; i < rest.size(); ++i) {
    EXPECT_EQ(rest[i].prompt, whole[i + 3].prompt);
    EXPECT_EQ(rest[i].sample, whole[i + 3].sample);
    EXPECT_EQ(rest[i].tokens, whole[i + 3].tokens);
    EXPECT_EQ(rest[i].log_probs, whole[i + 3].log_probs);
  }
}

TEST(GenerateAll, NothingToDo) {
  testing_support::TinyModel tiny;
  EXPECT_TRUE(generate_all(tiny.model, {}, {}).empty());
}

}  // namespace
}  // namespace collimate::generate
