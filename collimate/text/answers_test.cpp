#include "collimate/text/answers.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "collimate/base/stripped.h"
#include "collimate/text/character_tokenizer.h"
#include "collimate/text/characters.h"
#include "collimate/text/chat_template.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

// The cases in the repository (make_turns.py), or those that COLLIMATE_TURN_CASES names.
ordered_json turn_cases() {
  return ordered_json::parse(std::ifstream(golden_file("turns.json", "COLLIMATE_TURN_CASES")));
}

CharacterTokenizer tokenizer_of(const std::string& jinja, std::vector<std::string> specials, const std::string& text) {
  std::set<std::string> tokens;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).size)
    tokens.insert(text.substr(at, character_at(text, at).size));
  for (char c = '0'; c <= 'z'; ++c) tokens.emplace(1, c);
  for (const char* needed : {"<s>", "<|endoftext|>"})
    if (std::ranges::count(specials, needed) == 0) specials.emplace_back(needed);
  return CharacterTokenizer({.specials = std::move(specials),
                             .tokens = {tokens.begin(), tokens.end()},
                             .bos = "<s>",
                             .eos = "<|endoftext|>",
                             .chat_template = jinja});
}

Messages messages_of(const ordered_json& one) {
  Messages messages;
  for (ordered_json message : one.at("messages")) {
    Message out{message.at("role"), message.at("content")};
    message.erase("role");
    message.erase("content");
    if (!message.empty()) out.more = message;
    messages.push_back(std::move(out));
  }
  return messages;
}

// Returns what is trained, a text for each run of tokens, without blanks around it.
std::vector<std::string> trained(const Tokenizer& tokenizer, const RenderedTokens& tokens) {
  std::vector<std::string> runs;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.trainable[i] == 0) continue;
    if (i == 0 || tokens.trainable[i - 1] == 0) runs.emplace_back();
    runs.back() += tokenizer.token_bytes(tokens.ids[i]);
  }
  for (std::string& run : runs) run = base::stripped(run);
  return runs;
}

// Without marks, the turns are found that transformers finds by them, all of them or the last one alone.
TEST(Answers, AreThoseThatMarksSay) {
  const ordered_json cases = turn_cases();
  EXPECT_GT(cases.size(), 20U);
  for (const ordered_json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>() + ": " + one.at("messages").dump());
    const auto text = one.at("text").get<std::string>();
    const auto tokenizer =
        tokenizer_of(one.at("template"), one.at("specials").get<std::vector<std::string>>(), text + one.dump());
    std::vector<std::string> marked;
    for (const auto& [begin, end] : one.at("marked").get<std::vector<std::pair<size_t, size_t>>>())
      marked.emplace_back(base::stripped(text.substr(begin, end - begin)));
    for (const TrainOn train_on : {TrainOn::kAssistantTurns, TrainOn::kCompletion}) {
      const Renderer renderer(tokenizer, make_chat_template(tokenizer), {.train_on = train_on});
      RenderedTokens tokens;
      EXPECT_EQ(message_of<base::InputError>([&] { tokens = renderer.render_tokens(messages_of(one)); }), "");
      if (!one.at("same")) continue;
      if (train_on == TrainOn::kCompletion) marked = {marked.back()};
      EXPECT_EQ(trained(tokenizer, tokens), marked);
      EXPECT_EQ(tokenizer.decode(tokens.ids, false), text);
    }
  }
}

std::string error_of(const std::string& jinja, const Messages& messages) {
  const auto tokenizer = tokenizer_of(jinja, {"$"}, jinja + "ab|<>/");
  return message_of<base::InputError>([&] {
    Renderer(tokenizer, make_chat_template(tokenizer), {.train_on = TrainOn::kAssistantTurns}).render_tokens(messages);
  });
}

// The prompt goes on with an empty thought, and the turn with a call: both begin with <t.
TEST(Answers, ThatAreCallsBeginWithTheirTag) {
  const std::string jinja =
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.tool_calls %}<tool_call>"
      "{{ m.tool_calls[0].function.arguments | tojson }}</tool_call>{% else %}{{ m.content }}{% endif %}<|im_end|>\n"
      "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}";
  const auto tokenizer = tokenizer_of(jinja, {"<|im_start|>", "<|im_end|>"}, jinja + "\n\"{}: ,");
  Message call{"assistant", ""};
  call.more = ordered_json::parse(
      R"({"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"a": "12"}}}]})");
  const Renderer renderer(tokenizer, make_chat_template(tokenizer), {.train_on = TrainOn::kAssistantTurns});
  EXPECT_EQ(trained(tokenizer, renderer.render_tokens(Messages{{"user", "a"}, call})),
            std::vector<std::string>{R"(<tool_call>{"a": "12"}</tool_call><|im_end|>)"});
}

// A prompt that opens a thought where the template writes none leaves no place for an answer.
TEST(Answers, BehindAnOpenThoughtAreRefused) {
  const auto tokenizer = tokenizer_of(
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]<think>"
      "{% endif %}",
      {"$"}, "[]<>");
  EXPECT_THAT(
      message_of<base::InputError>([&] {
        Renderer(tokenizer, make_chat_template(tokenizer)).render_tokens(Messages{{"user", "a"}, {"assistant", "b"}});
      }),
      HasSubstr("got one that opens no earlier turn as its prompt does"));
}

TEST(Answers, WithoutOnePlaceAreRefused) {
  const Messages two = {{"user", "a"}, {"assistant", "b"}, {"user", "a"}, {"assistant", "b"}};
  const auto refused = [&](const std::string& assistant, const std::string& got, const std::string& top = "") {
    const std::string jinja = top +
                              "{{ messages | length }}{% for m in messages %}{% if m.role == 'user' %}<{{ m.content }}>"
                              "{% else %}" +
                              assistant +
                              "{% endif %}{% endfor %}"
                              "{% if add_generation_prompt %}|{% endif %}";
    EXPECT_EQ(error_of(jinja, two),
              "[chat template] expected a text in which each turn of the assistant has one place, got one " + got +
                  "; try a template with {% generation %}, or training on the completion alone");
  };
  refused("|{{ m.content }}{{ m.content }}", "that writes an answer never or more than once");
  refused("|", "that writes an answer never or more than once");
  refused("{{ m.content }}", "that opens no earlier turn as its prompt does");
  refused("|{{ m.content }}{{ m.content | length }}", "in which what an answer says changes what stands after it");
  refused("|{{ m.content }}", "in which what an answer says changes what stands before it",
          "{{ (messages | last).content | length }}");
}

}  // namespace
}  // namespace collimate::text
