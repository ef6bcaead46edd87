#include "collimate/generate/completion_text.h"

#include <gtest/gtest.h>

#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using testing_support::PieceTokenizer;
using Ids = std::vector<int32_t>;

const PieceTokenizer kTokenizer({"a", "b", "<eos>", "\xC3", "\xA9", "ab", "\xE3\x80", "\x82", "a"});

std::string shown(const Ids& tokens, const std::vector<std::string>& stop, int64_t min_tokens = 0) {
  SamplingParams params;
  params.stop = stop;
  params.min_tokens = min_tokens;
  return completion_text(kTokenizer, {}, tokens, params);
}

TEST(CompletionText, WithoutAStopStringItIsTheDecoding) {
  for (const Ids& tokens : {Ids{0, 5, 2, 1}, Ids{3, 4, 6, 7}, Ids{3, 0, 6}, Ids{}}) {
    EXPECT_EQ(shown(tokens, {}), kTokenizer.decode(tokens));
    EXPECT_EQ(shown(tokens, {"absent"}), kTokenizer.decode(tokens));
  }
}

TEST(CompletionText, CutsOverTokenBorders) {
  EXPECT_EQ(shown({0, 0, 0, 1, 1}, {"aab"}), "a");
  EXPECT_EQ(shown({0, 5}, {"aab", "x"}), "");
  EXPECT_EQ(shown({1, 3, 4, 6, 7, 1}, {"é。"}), "b");
  EXPECT_EQ(shown({5}, {"b"}), "a") << "within a token";
  EXPECT_EQ(shown({0, 2, 1}, {"ab"}), "") << "special tokens have no text";
}

TEST(CompletionText, ShowsSpecialTokensThatAreAskedFor) {
  CompletionText text(kTokenizer, {}, {}, {2});
  EXPECT_EQ(text.push(0) + text.push(2) + text.finish(), "a<eos>");
  CompletionText others(kTokenizer, {}, {}, {0});
  EXPECT_EQ(others.push(0) + others.push(2) + others.finish(), "a");
}

TEST(CompletionText, TheFirstMinTokensCompleteNone) {
  EXPECT_EQ(shown({5, 5, 5}, {"ab"}), "");
  EXPECT_EQ(shown({5, 5, 5}, {"ab"}, 1), "ab");
  EXPECT_EQ(shown({5, 5, 5}, {"ab"}, 2), "abab");
  EXPECT_EQ(shown({5, 5, 5}, {"ab"}, 3), "ababab");
  EXPECT_EQ(shown({0, 1}, {"ab"}, 1), "") << "it may begin there";
}

TEST(CompletionText, SaysWhatIsCertainTokenByToken) {
  SamplingParams params;
  params.stop = {"b。"};
  CompletionText text(kTokenizer, params, {});
  EXPECT_EQ(text.push(3), "");
  EXPECT_EQ(text.push(4), "é");
  EXPECT_EQ(text.push(5), "a");
  EXPECT_EQ(text.push(5), "ba");
  EXPECT_EQ(text.push(6), "");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(text.push(7), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.push(0) + text.finish(), "");
}

// A decoder that drops the space in front of a text, as Llama's.
class SpacedWords : public testing::Test {
 protected:
  std::string after(const std::string& prompt, const Ids& tokens, const std::vector<std::string>& stop = {}) const {
    return completion_text(*words_, words_->encode(prompt, {.add_special = true}), tokens, {.stop = stop});
  }

  const std::unique_ptr<text::Tokenizer> words_ =
      text::load_tokenizer(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/sentencepiece");
  const Ids cat_sat_ = words_->encode(" cat sat", {.continues = true});
};

TEST_F(SpacedWords, ACompletionContinuesItsPrompt) {
  ASSERT_EQ(words_->decode(cat_sat_), "cat sat");
  EXPECT_EQ(after("the", cat_sat_), " cat sat");
  EXPECT_EQ(after("", cat_sat_), "cat sat") << "behind bos alone it begins the text";
  Ids late = {*words_->bos_id()};
  late.insert(late.end(), cat_sat_.begin(), cat_sat_.end());
  EXPECT_EQ(after("the", late), " cat sat") << "special tokens have no text";
  for (const char* prompt : {"", "the", "the cat ", "日", "\n"}) {
    Ids all = words_->encode(prompt, {.add_special = true});
    const std::string before = words_->decode(all);
    all.insert(all.end(), late.begin(), late.end());
    EXPECT_EQ(before + after(prompt, late), words_->decode(all)) << prompt;
  }
}

TEST_F(SpacedWords, AStopStringMayBeginWithTheFirstSpace) {
  EXPECT_EQ(after("the", cat_sat_, {" cat"}), "");
  EXPECT_EQ(after("", cat_sat_, {" cat"}), "cat sat");
  EXPECT_EQ(after("the", cat_sat_, {" sat"}), " cat");
}

}  // namespace
}  // namespace collimate::generate
