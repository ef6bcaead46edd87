#include "collimate/serve/chat_answer.h"

#include <gtest/gtest.h>

#include "collimate/text/character_tokenizer.h"

namespace collimate::serve {
namespace {

using nlohmann::ordered_json;

// Characters, the marks of harmony as special tokens, and a template that writes calls as gpt-oss' does, or none.
text::CharacterTokenizer harmony_tokenizer(bool writes_calls) {
  text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<|return|>"}};
  for (const char* mark : {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"})
    vocabulary.specials.emplace_back(mark);
  vocabulary.tokens.emplace_back("\n");
  for (char c = ' '; c <= '~'; ++c) vocabulary.tokens.emplace_back(1, c);
  vocabulary.eos = "<|return|>";
  const std::string call =
      "{% for c in m.tool_calls %}<|start|>assistant to=functions.{{ c.function.name }}<|channel|>commentary json"
      "<|message|>{{ c.function.arguments | tojson }}<|call|>{% endfor %}";
  vocabulary.chat_template = "{% for m in messages %}{% if m.tool_calls %}" + (writes_calls ? call : "") +
                             "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
                             "{% if add_generation_prompt %}<|start|>assistant{% endif %}";
  return text::CharacterTokenizer(std::move(vocabulary));
}

struct Heard {
  std::string shown;
  text::Message message;
};

// The text's tokens come one by one; the last one ends it.
Heard hear(const std::string& said, bool writes_calls = true) {
  const text::CharacterTokenizer tokenizer = harmony_tokenizer(writes_calls);
  const text::Renderer renderer(tokenizer, text::make_chat_template(tokenizer));
  const ordered_json tools = {{{"type", "function"}, {"function", {{"name", "add"}}}}};
  ChatAnswer answer(renderer, {}, {}, tools);
  Heard heard;
  const std::vector<int32_t> ids = tokenizer.encode(said);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_FALSE(answer.finished());
    generate::Emission emission{.tokens = {ids[i]}, .log_probs = {0}};
    if (i + 1 == ids.size()) emission.finish = generate::Finish::kEos;
    heard.shown += answer.read(emission);
  }
  EXPECT_TRUE(answer.finished());
  heard.message = answer.message();
  return heard;
}

TEST(ChatAnswer, HasTheChannelsOfHarmonyApart) {
  const Heard heard = hear(
      "<|channel|>analysis<|message|>2 and 2 <\nis 4.<|end|><|start|>assistant<|channel|>final<|message|>4!<|return|>");
  EXPECT_EQ(heard.shown, "thinking: 2 and 2 <\nis 4.\nanswer: 4!");
  EXPECT_EQ(heard.message, (text::Message{"assistant", "4!", {{"reasoning_content", "2 and 2 <\nis 4."}}}));
}

TEST(ChatAnswer, HasCallsApartThatEndTheTurn) {
  const std::string call = "<|channel|>commentary to=functions.add json<|message|>{\"a\": 2}<|call|>";
  const ordered_json calls = {{{"type", "function"}, {"function", {{"name", "add"}, {"arguments", "{\"a\": 2}"}}}}};
  const Heard heard = hear("<|channel|>analysis<|message|>Adding.<|end|><|start|>assistant" + call);
  EXPECT_EQ(heard.shown, "thinking: Adding.\ncall: add {\"a\": 2}");
  EXPECT_EQ(heard.message, (text::Message{"assistant", "", {{"reasoning_content", "Adding."}, {"tool_calls", calls}}}));
  const Heard preamble = hear(
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary"
      "<|message|>So:<|end|><|start|>assistant" +
      call);
  EXPECT_EQ(preamble.shown, "thinking: Hm.\nanswer: So:\ncall: add {\"a\": 2}");
  EXPECT_EQ(preamble.message, (text::Message{"assistant", "So:", {{"tool_calls", calls}}}));
}

TEST(ChatAnswer, OfAnotherTemplateIsItsText) {
  const Heard heard = hear("<|channel|>analysis<|message|>4<|return|>", false);
  EXPECT_EQ(heard.shown, "analysis4");
  EXPECT_EQ(heard.message, (text::Message{"assistant", "analysis4"}));
}

}  // namespace
}  // namespace collimate::serve
