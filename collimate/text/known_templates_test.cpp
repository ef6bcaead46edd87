#include "collimate/text/known_templates.h"

#include <gmock/gmock.h>

#include "collimate/text/character_tokenizer.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/jinja_outline.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTurns =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}";
constexpr const char* kAssistantOpens = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

// Qwen2.5 lays it out so: white space taken away by signs, double quotes, attributes.
constexpr const char* kWithTools = R"jinja({%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are Q.' }}
    {%- endif %}
    {{- "\n\n# Tools\n{\"name\": <function-name>}\n<|im_end|>\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are Q.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first)
        or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- for tool_call in message.tool_calls %}
            {{- '\n<tool_call>\n' + (tool_call | tojson) }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
)jinja";

std::unique_ptr<ChatTemplate> chat_of(const std::string& jinja) {
  const CharacterTokenizer tokenizer(CharacterVocabulary{.specials = {"$", "#"},
                                                         .tokens = {"a"},
                                                         .bos = {},
                                                         .eos = "$",
                                                         .pad = "#",
                                                         .unk = "#",
                                                         .separator = {},
                                                         .chat_template = jinja});
  return make_chat_template(tokenizer);
}

std::string asked(const std::string& jinja) { return chat_of(jinja)->render(Messages{{"user", "hi"}}, true); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string with_default_system(const std::string& literal) {
  return replaced(
             kTurns, "messages %}",
             "messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ " + literal + " }}{% endif %}") +
         kAssistantOpens;
}

TEST(KnownTemplates, OtherSpellingsOfChatMl) {
  const std::string expected = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n";
  const std::string one_line = std::string(kTurns) + kAssistantOpens;
  EXPECT_EQ(asked(one_line), expected);
  EXPECT_EQ(asked(one_line + "\n"), expected);
  EXPECT_EQ(asked("{# ChatML #}\n" + one_line), expected);
  EXPECT_EQ(asked("{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}" +
                  one_line),
            expected);
  EXPECT_EQ(asked("{%- for m in messages -%}\n  {{- \"<|im_start|>\" ~ m.role ~ '\\n' }}{{ m.content -}}\n"
                  "  {{ '<|im_end|>\\n' -}}\n{%- endfor -%}\n  {%- if add_generation_prompt -%}\n"
                  "    {{- '<|im_start|>assistant\\n' -}}\n  {%- endif -%}\n"),
            expected);
  EXPECT_EQ(asked("{% for message in messages %}\n<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
                  "{% endfor %}\n  {% if add_generation_prompt %}\n<|im_start|>assistant\n  {% endif %}\n"),
            expected);
}

TEST(KnownTemplates, DefaultSystemMessagesAreReadAsJinjaReadsThem) {
  for (const std::string literal : {"\"<|im_start|>system\\nYou're kind: {x}\\\\boxed{}.<|im_end|>\\n\"",
                                    "'<|im_start|>system\\nYou\\'re kind: {x}\\\\boxed{}.' + '<|im_end|>\\n'"})
    EXPECT_EQ(asked(with_default_system(literal)),
              "<|im_start|>system\nYou're kind: {x}\\boxed{}.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
              "<|im_start|>assistant\n");
  EXPECT_FALSE(recognise_template(with_default_system("'<|im_start|>system\\n' + date + '<|im_end|>\\n'")));
  EXPECT_FALSE(recognise_template(with_default_system("'<|im_start|>system\\n<|im_end|>\\n'")));
  EXPECT_FALSE(recognise_template(with_default_system("'<|im_start|>system\\n\\u0041<|im_end|>\\n'")));
}

TEST(KnownTemplates, ChatMlWithToolsHasNoPlaceForTheirResults) {
  const auto chat = chat_of(kWithTools);
  EXPECT_EQ(chat->render(Messages{{"user", "hi"}, {"assistant", "yo"}}, false),
            "<|im_start|>system\nYou are Q.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo"
            "<|im_end|>\n");
  EXPECT_EQ(chat->render(Messages{{"system", "s"}, {"user", "hi"}}, true),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_THAT(message_of<base::InputError>([&] {
                chat->render(Messages{{"user", "hi"}, {"tool", "5"}}, true);
              }),
              HasSubstr("'tool'"));
  EXPECT_FALSE(recognise_template(replaced(kWithTools, "{%- else %}\n    {%- if", "{%- else %}\n    x{%- if")));
  EXPECT_FALSE(recognise_template(replaced(kWithTools, "'\\n' + message.content", "'\\n' + message.content | trim")));
}

// Each was once taken for ChatML or for plain contents, and rendered without a part of what it says.
TEST(KnownTemplates, OthersAreNotRecognised) {
  const std::string turns = kTurns;
  const std::vector<std::string> others = {
      // Vicuna
      "{% for message in messages %}{% if message['role'] == 'user' %}USER: {{ message['content'] }} "
      "{% else %}ASSISTANT: {{ message['content'] }}</s>{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}ASSISTANT:{% endif %}",
      // Alpaca
      "{% for message in messages %}{% if message['role'] == 'user' %}{{ '### Instruction:\\n' }}"
      "{{ message['content'] }}{{ '\\n\\n' }}{% else %}{{ '### Response:\\n' }}{{ message['content'] }}{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}{{ '### Response:\\n' }}{% endif %}",
      // Phi-4
      "{% for message in messages %}{% if (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + "
      "message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'assistant') %}{{'<|im_start|>assistant"
      "<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endif %}{% endfor %}{% if add_generation_prompt %}"
      "{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}",
      turns + replaced(kAssistantOpens, "assistant\\n", "assistant\\n<think>\\n"),
      "{{ bos_token }}" + turns + kAssistantOpens,
      turns + kAssistantOpens + "template ends here",
      turns,
      "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}",
      "{% for message in messages %}{{ message['content'] }}\n\n{% endfor %}",
      "{% for message in messages %}{% if message['role'] == 'user' %}{{ message['content'] }}{% endif %}{% endfor %}",
      "{% raw %}" + turns + kAssistantOpens + "{% endraw %}",
      turns + "{% if add_generation_prompt",
      "{{ 'open }}",
  };
  for (const std::string& jinja : others) {
    EXPECT_FALSE(recognise_template(jinja)) << jinja;
    EXPECT_THAT(message_of<base::InputError>([&] { asked(jinja); }), HasSubstr("try models.<role>.chat_template"));
    EXPECT_THAT(chat_of(jinja)->description(), HasSubstr("not recognised"));
  }
}

TEST(KnownTemplates, PlainContents) {
  EXPECT_EQ(asked("{% for message in messages %}{{ message.content }}{% endfor %}"), "hi");
  EXPECT_EQ(asked("{% for turn in messages %}\n{{- turn['content'] -}}\n{% endfor %}"), "hi");
}

// White space as transformers' environment leaves it: trim_blocks, lstrip_blocks, signs.
TEST(JinjaOutline, WhiteSpace) {
  const auto outline = [](const std::string& jinja) { return jinja_outline(jinja).value(); };
  EXPECT_THAT(outline("a\n  {% if x %}\n  b\n  {% endif %}\n\nc\n"),
              ElementsAre("=a\n", "%if x", "=  b\n", "%endif", "=\nc"));
  EXPECT_THAT(outline("a {% if x %} b {% endif %} c"), ElementsAre("=a ", "%if x", "= b ", "%endif", "= c"));
  EXPECT_THAT(outline("a \n {%- if x -%} \n b{%+ endif +%}\nc"), ElementsAre("=a", "%if x", "=b", "%endif", "=\nc"));
  EXPECT_THAT(outline("a\n  {{ 'b' }}\n{{- 'c' -}}\n d\r\n"), ElementsAre("=a\n  bcd"));
  EXPECT_THAT(outline("a\n  {# b }} #}\nc"), ElementsAre("=a\nc"));
  EXPECT_THAT(outline("{{ '}}' + \"%}\" }}"), ElementsAre("=}}%}"));
  EXPECT_THAT(outline("{{ x['y'][0] ~ ['z'] }}"), ElementsAre("=\x01x.y[0]\x01\x01[\x02z\x02]\x01"));
}

}  // namespace
}  // namespace collimate::text
