#include "collimate/text/added_tokens.h"

#include <gmock/gmock.h>

namespace collimate::text {
namespace {

using testing::ElementsAre;

// "id:text" of every match in order.
std::vector<std::string> matches(const std::vector<AddedToken>& tokens, const std::string& text) {
  TokenMatcher matcher;
  for (const AddedToken& token : tokens) matcher.add(token);
  std::vector<std::string> out;
  Span span;
  int32_t id = 0;
  for (size_t at = 0; matcher.find(text, at, true, span, id); at = span.end) {
    out.push_back(std::to_string(id) + ":" + text.substr(span.begin, span.size()));
  }
  return out;
}

TEST(AddedTokens, LeftmostThenLongest) {
  const std::vector<AddedToken> tokens = {
      {.id = 1, .content = "<a"}, {.id = 2, .content = "<a>b"}, {.id = 3, .content = "a>"}};
  EXPECT_THAT(matches(tokens, "x<a>b<a>a>"), ElementsAre("2:<a>b", "1:<a", "3:a>"));
}

TEST(AddedTokens, TakeTheWhiteSpaceTheyAreToldTo) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "<m>", .left_strip = true},
                                          {.id = 2, .content = "<n>", .right_strip = true}};
  EXPECT_THAT(matches(tokens, "a \u3000<m> b <n>\t c"), ElementsAre("1: \u3000<m>", "2:<n>\t "));
  EXPECT_THAT(matches(tokens, "<n>  <m>"), ElementsAre("2:<n>  ", "1:<m>"));
}

TEST(AddedTokens, SingleWordsTouchNoLetters) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "cat", .single_word = true}};
  EXPECT_THAT(matches(tokens, "cats, cat. écat cat_ (cat)"), ElementsAre("1:cat", "1:cat"));
  for (const char* word : {"\u200D", "\u200C", "\u0301", "\u2167", "\u24B6", "\u203F", "5"})
    EXPECT_THAT(matches(tokens, std::string("cat") + word), ElementsAre()) << word;
  for (const char* other : {"\u200B", "\u00B2", "\u0378", "\u00BD", "-"})  // no joiner, ², unassigned, ½
    EXPECT_THAT(matches(tokens, other + std::string("cat")), ElementsAre("1:cat")) << other;
}

}  // namespace
}  // namespace collimate::text
