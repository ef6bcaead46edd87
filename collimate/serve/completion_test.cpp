#include "collimate/serve/completion.h"

#include <gtest/gtest.h>

#include "collimate/base/at.h"
#include "collimate/text/utf8.h"

namespace collimate::serve {
namespace {

using generate::Finish;

std::unique_ptr<text::Tokenizer> tokenizer() {
  return text::load_tokenizer(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/byte_level");
}

// The tokens one by one, the last with `finish`.
Delta read_all(ChoiceText& text, const std::vector<int32_t>& ids, Finish finish) {
  Delta all;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Delta delta = text.read({.tokens = {ids[i]},
                                   .log_probs = {-static_cast<float>(i)},
                                   .finish = i + 1 < ids.size() ? Finish::kRunning : finish});
    EXPECT_TRUE(text::is_valid_utf8(delta.text));
    all.text += delta.text;
    all.tokens.insert(all.tokens.end(), delta.tokens.begin(), delta.tokens.end());
    all.log_probs.insert(all.log_probs.end(), delta.log_probs.begin(), delta.log_probs.end());
    all.finish_reason = delta.finish_reason;
  }
  return all;
}

TEST(ChoiceText, IsTheTextOfItsTokensInWholeCharacters) {
  const auto words = tokenizer();
  const std::string said = "Straße \xF0\x9F\x99\x82 日本語";
  const std::vector<int32_t> ids = words->encode(said);
  ChoiceText text(*words, {}, {});
  const Delta all = read_all(text, ids, Finish::kLength);
  EXPECT_EQ(all.text, said);
  EXPECT_EQ(all.tokens, ids);
  EXPECT_EQ(all.finish_reason, "length");
  EXPECT_TRUE(text.finished());
  EXPECT_FALSE(text.stopped_by_text());
}

TEST(ChoiceText, ReplacesACharacterThatIsNeverFinished) {
  const auto words = tokenizer();
  std::vector<int32_t> ids = words->encode("a\xF0\x9F\x99\x82");
  ids.pop_back();
  ASSERT_GT(ids.size(), 1U);
  ChoiceText text(*words, {}, {});
  const Delta all = read_all(text, ids, Finish::kLength);
  EXPECT_TRUE(all.text.starts_with("a\xEF\xBF\xBD")) << all.text;
}

TEST(ChoiceText, DoesNotShowTheTokenThatEndedIt) {
  const auto words = tokenizer();
  std::vector<int32_t> ids = words->encode("ab!");
  for (const Finish finish : {Finish::kEos, Finish::kStop}) {
    ChoiceText text(*words, {.stop_ids = {ids.back()}}, {});
    const Delta all = read_all(text, ids, finish);
    EXPECT_EQ(all.text, words->decode(std::span(ids).first(ids.size() - 1)));
    EXPECT_EQ(all.tokens, ids);
    EXPECT_EQ(all.finish_reason, "stop");
  }
}

TEST(ChoiceText, SaysThatTimeEndedItAndShowsAllOfIt) {
  const auto words = tokenizer();
  const std::vector<int32_t> ids = words->encode("ab!");
  ChoiceText text(*words, {.stop = {"!?"}}, {});
  const Delta all = read_all(text, ids, Finish::kTimeout);
  EXPECT_EQ(all.text, "ab!");  // with what was held back, as a stop string may begin with it
  EXPECT_EQ(all.finish_reason, "timeout");
}

TEST(ChoiceText, EndsAtAStopStringAndLeavesOutTheTokensBehindIt) {
  const auto words = tokenizer();
  const std::vector<int32_t> ids = words->encode("one two three four");
  ChoiceText text(*words, {.stop = {"two"}}, {});
  Delta all = text.read({.tokens = ids, .log_probs = std::vector<float>(ids.size(), 0.F), .finish = Finish::kLength});
  EXPECT_EQ(all.text, "one ");
  EXPECT_EQ(all.finish_reason, "stop");
  EXPECT_TRUE(text.stopped_by_text());
  EXPECT_LT(all.tokens.size(), ids.size());
  EXPECT_EQ(all.log_probs.size(), all.tokens.size());
  EXPECT_TRUE(words->decode(all.tokens).ends_with("two"));
  EXPECT_TRUE(text.read({.tokens = ids, .log_probs = std::vector<float>(ids.size(), 0.F)}).tokens.empty());
}

TEST(ChoiceText, EndsAtAStopStringThatTheEngineFoundToo) {
  const auto words = tokenizer();
  const std::vector<int32_t> ids = words->encode("one two");
  ChoiceText text(*words, {.stop = {" two"}}, {});
  EXPECT_EQ(read_all(text, ids, Finish::kStop).text, "one");
}

TEST(ChoiceText, KeepsTheMostLikelyTokensOfTheTokensThatItShows) {
  const auto words = tokenizer();
  const std::vector<int32_t> ids = words->encode("one two three four");
  std::vector<generate::TokenLogProb> top;  // two of each token
  for (size_t i = 0; i < ids.size(); ++i) {
    top.push_back({ids[i], -static_cast<float>(i)});
    top.push_back({7, -9.F});
  }
  ChoiceText text(*words, {.stop = {"two"}}, {});
  const Delta delta =
      text.read({.tokens = ids, .log_probs = std::vector<float>(ids.size(), 0.F), .top_log_probs = top});
  ASSERT_LT(delta.tokens.size(), ids.size());
  ASSERT_EQ(delta.top_log_probs.size(), 2 * delta.tokens.size());
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    EXPECT_EQ(delta.top_log_probs[2 * i].token, delta.tokens[i]);
    EXPECT_EQ(delta.top_log_probs[2 * i].log_prob, -static_cast<float>(i));
    EXPECT_EQ(delta.top_log_probs[2 * i + 1].token, 7);
  }
}

TEST(ChoiceText, TheFirstMinTokensCompleteNoStopString) {
  const auto words = tokenizer();
  const std::vector<int32_t> ids = words->encode("two one two three");
  ChoiceText text(*words, {.min_tokens = static_cast<int64_t>(words->encode("two").size()), .stop = {"two"}}, {});
  EXPECT_EQ(read_all(text, ids, Finish::kLength).text, "two one ");
}

TEST(ChoiceText, AStopStringMayBeCompleteOnlyWithTheLastBytes) {
  const auto words = tokenizer();
  ChoiceText text(*words, {.stop = {"xyz"}}, {});
  const std::vector<int32_t> ids = words->encode("abxy");
  EXPECT_EQ(read_all(text, ids, Finish::kLength).text, "abxy");
  EXPECT_FALSE(text.stopped_by_text());
}

TEST(Completions, DropsAChoiceThatAStopStringEnded) {
  const auto words = tokenizer();
  const std::vector<int32_t> ids = words->encode("one two three");
  const auto channel = std::make_shared<Channel>(2, 100);
  {
    const std::vector<std::vector<int32_t>> prompts = {words->encode("zero ")};
    Completions completions(channel, *words, {.stop = {"two"}}, prompts);
    const generate::Emission emission{.tokens = ids, .log_probs = std::vector<float>(ids.size(), 0.F)};
    channel->push(0, emission);
    channel->push(1, {.tokens = {ids[0]}, .log_probs = {0.F}});
    EXPECT_EQ(completions.next(base::Deadline::after(600)).size(), 2U);
    EXPECT_FALSE(channel->wanted(0));
    EXPECT_TRUE(channel->wanted(1));
    EXPECT_FALSE(completions.finished());
    channel->push(1, {.finish = Finish::kLength});
    EXPECT_EQ(completions.next(base::Deadline::after(600))[0].finish_reason, "length");
    EXPECT_TRUE(completions.finished());
  }
  EXPECT_FALSE(channel->wanted(1));
}

// Each choice continues its own prompt; the one of bos alone has no text before it.
TEST(Completions, KeepTheSpaceBehindThePromptsText) {
  const auto words = text::load_tokenizer(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/sentencepiece");
  const std::vector<std::vector<int32_t>> prompts = {words->encode("", {.add_special = true}),
                                                     words->encode("the", {.add_special = true})};
  const std::vector<int32_t> ids = words->encode(" cat sat", {.continues = true});
  const auto channel = std::make_shared<Channel>(4, 100);
  Completions completions(channel, *words, {}, prompts);
  std::vector<std::string> texts(4);
  for (const int32_t id : ids) {
    for (int64_t choice = 0; choice < 4; ++choice) channel->push(choice, {.tokens = {id}, .log_probs = {0.F}});
    for (const Delta& delta : completions.next(base::Deadline::after(600))) base::at(texts, delta.choice) += delta.text;
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"cat sat", "cat sat", " cat sat", " cat sat"}));
}

}  // namespace
}  // namespace collimate::serve
