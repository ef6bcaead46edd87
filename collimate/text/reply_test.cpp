#include <gmock/gmock.h>

#include "collimate/base/error.h"
#include "collimate/text/character_tokenizer.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/files.h"
#include "tests/support/base/error_of.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using Ids = std::vector<int32_t>;

Ids joined(std::initializer_list<Ids> parts) {
  Ids all;
  for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Reply : public testing::Test {
 protected:
  Ids encoded(const std::string& text) const { return tokenizer_->encode(text, {.continues = true}); }

  std::unique_ptr<Tokenizer> tokenizer_ = load_tokenizer(testdata("byte_level"));  // with a template like ChatML
  Renderer renderer_{*tokenizer_, make_chat_template(*tokenizer_)};
  const Message asked_{"user", "hi"}, reply_{"user", "the cat <|im_end|> it"};
};

// The prefix property: what was drawn stays, and the whole is what the template writes for the conversation.
TEST_F(Reply, ATurnAndItsReplyAreTheConversationsOwnTokens) {
  const Ids prompt = renderer_.prompt_tokens(Messages{asked_});
  const Ids said = encoded("the"), end = encoded("<|im_end|>");
  ASSERT_EQ(end.size(), 1U);
  const Ids whole = renderer_.prompt_tokens(Messages{asked_, {"assistant", "the"}, reply_});
  EXPECT_EQ(joined({prompt, said, end, renderer_.reply_tokens(reply_, prompt, end[0])}), whole);
  // A turn that a stop text ended has no mark yet.
  EXPECT_EQ(joined({prompt, said, renderer_.reply_tokens(reply_, prompt, said.back())}), whole);
}

TEST_F(Reply, APromptWithTokensBehindItsOpeningIsAConversationToo) {
  const Ids prompt = joined({renderer_.prompt_tokens(Messages{asked_}), encoded("<think>\n\n</think>\n\n")});
  EXPECT_EQ(renderer_.reply_tokens(reply_, prompt, -1),
            renderer_.reply_tokens(reply_, renderer_.prompt_tokens(Messages{asked_}), -1));
}

TEST_F(Reply, APromptOfPlainTextIsFollowedByTheReplyAlone) {
  const Ids prompt = renderer_.prompt_tokens("the cat");
  EXPECT_EQ(renderer_.reply_tokens({"user", " it"}, prompt, 1), encoded(" it"));
}

TEST_F(Reply, AModelWithoutATemplateReadsTheReplyAlone) {
  const Renderer plain(*tokenizer_, make_chat_template(*tokenizer_, "plain"));
  EXPECT_EQ(plain.reply_tokens({"user", " it"}, plain.prompt_tokens("the"), 1), encoded(" it"));
}

TEST_F(Reply, ATemplateThatChangesWordsIsRefused) {
  CharacterVocabulary vocabulary{.specials = {"$", "^", "#"},
                                 .tokens = {},
                                 .bos = "^",
                                 .eos = "$",
                                 .pad = "#",
                                 .unk = "#",
                                 .chat_template =
                                     "{% for m in messages %}{{ m.content | upper if m.role == 'assistant' else "
                                     "m.content }}:{% endfor %}{% if add_generation_prompt %}b{% endif %}"};
  for (char c = 'a'; c <= 'z'; ++c) vocabulary.tokens.emplace_back(1, c);
  const CharacterTokenizer tokenizer(std::move(vocabulary));
  const Renderer renderer(tokenizer, make_chat_template(tokenizer));
  const Ids prompt = renderer.prompt_tokens(Messages{asked_});
  EXPECT_THAT(base::message_of<base::InputError>([&] { renderer.reply_tokens(reply_, prompt, -1); }),
              testing::HasSubstr("[chat template] expected the words of an assistant's turn as they are"));
}

}  // namespace
}  // namespace collimate::text
