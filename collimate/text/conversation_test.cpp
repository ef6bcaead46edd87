#include "collimate/text/conversation.h"

#include <gmock/gmock.h>

#include <fstream>
#include <regex>

#include "collimate/text/character_tokenizer.h"
#include "collimate/text/dataset.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

CharacterTokenizer with_template(const std::string& jinja) {
  return CharacterTokenizer({.specials = {"$"}, .tokens = {"a"}, .eos = "$", .chat_template = jinja});
}

ordered_json goldens() {
  return ordered_json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/conversations.json"));
}

Conversation prompt_of(const ordered_json& row) {
  return std::get<Conversation>(to_example(DataShape::kMessages, Row(row), {"f.jsonl", 0, 1}).prompt);
}

// A row's tools, options, calls and results are written as transformers writes them (make_conversations.py).
TEST(Conversation, RowsBecomeWhatTransformersMakesOfThem) {
  const ordered_json cases = goldens();
  EXPECT_GT(cases.size(), 10U);
  for (const ordered_json& one : cases) {
    const CharacterTokenizer tokenizer = with_template(one.at("template"));
    const auto chat = make_chat_template(tokenizer);
    const Example example = to_example(DataShape::kMessages, Row(one.at("row")), {"f.jsonl", 0, 1});
    auto conversation = std::get<Conversation>(example.prompt);
    EXPECT_EQ(chat->render(conversation, true), one.at("prompt").get<std::string>());
    conversation.turns.push_back(example.completion.value());
    EXPECT_EQ(chat->render(conversation, false), one.at("text").get<std::string>());
  }
}

// The form of the arguments in the data changes nothing.
TEST(Conversation, ArgumentsAreGivenAsTheTemplateTakesThem) {
  for (const ordered_json& one : goldens()) {
    ordered_json row = one.at("row");
    for (ordered_json& message : row["messages"])
      for (ordered_json& call :
           message.value("tool_calls", ordered_json()).is_null() ? ordered_json::array() : message["tool_calls"]) {
        ordered_json& arguments = call["function"]["arguments"];
        arguments =
            arguments.is_string() ? ordered_json::parse(arguments.get<std::string>()) : ordered_json(arguments.dump());
      }
    const auto chat = make_chat_template(with_template(one.at("template")));
    EXPECT_EQ(chat->render(prompt_of(row), true), one.at("prompt").get<std::string>());
  }
}

TEST(Conversation, VariablesOfTheModelGoBehindThoseOfTheRow) {
  const auto tokenizer =
      with_template("{% for m in messages %}{{ m.content }}{% endfor %}{{ style }}{% if loud %}!{% endif %}");
  const auto chat = make_chat_template(tokenizer, "auto", {{"style", "s"}, {"loud", true}});
  EXPECT_EQ(chat->render(Messages{{"user", "a"}}, true), "as!");
  EXPECT_EQ(chat->render({{{"user", "a"}}, {.variables = {{"loud", false}}}}, true), "as");
  const auto error = [&](const ordered_json& variables) {
    return message_of<base::InputError>([&] { make_chat_template(tokenizer, "auto", variables); });
  };
  EXPECT_EQ(error({{"stile", 1}}),
            "[chat_template_kwargs] expected variables that the chat template reads, got stile, which it does not (the "
            "model's own chat template); try leaving it out");
  EXPECT_THAT(error({{"tools", 1}}), HasSubstr("got tools, which a conversation says by itself"));
  EXPECT_THAT(message_of<base::InputError>([&] {
                chat->render({{{"user", "a"}}, {.variables = {{"stile", false}}}}, true);
              }),
              HasSubstr("got stile"));
}

// Contents that a template does not write are refused and not dropped.
TEST(Conversation, WhatATemplateLeavesOutIsRefused) {
  const std::string contents = "{% for m in messages %}{{ m.content }}{% endfor %}";
  const auto error = [](const std::string& jinja, const Conversation& conversation) {
    return message_of<base::InputError>([&] { make_chat_template(with_template(jinja))->render(conversation, false); });
  };
  const Messages asked = {{"user", "a"}};
  const TemplateInputs tools{.tools = ordered_json::array({{{"name", "f"}}})};
  const auto left_out = [](const std::string& what) {
    return AllOf(HasSubstr("[chat template] expected one that writes " + what + ", got one that leaves them out"),
                 HasSubstr("data without them"));
  };
  EXPECT_THAT(error(contents, {asked, tools}), left_out("tools"));
  EXPECT_THAT(error("{% if tools and false %}{{ tools }}{% endif %}" + contents, {asked, tools}), left_out("tools"));
  EXPECT_EQ(error("{{ tools | tojson }}" + contents, {asked, tools}), "");

  const ordered_json calls = {{"tool_calls", {{{"function", {{"name", "f"}, {"arguments", ordered_json::object()}}}}}}};
  const Messages called = {{"user", "a"}, {"assistant", "b", calls}};
  EXPECT_THAT(error(contents, called), left_out("calls of tools (tool_calls)"));
  EXPECT_THAT(error(contents + "{% if messages[0].tool_calls %}c{% endif %}", called),
              left_out("calls of tools (tool_calls)"));
  EXPECT_EQ(error("{% for m in messages %}{{ m.content }}{{ m.tool_calls }}{% endfor %}", called), "");

  const Messages answered = {{"user", "a"}, {"tool", "12:00"}};
  EXPECT_THAT(error("{% for m in messages if m.role != 'tool' %}{{ m.content }}{% endfor %}", answered),
              left_out("results of tools"));
  EXPECT_EQ(error(contents, answered), "");

  const Messages thought = {{"user", "a"}, {"assistant", "b", {{"reasoning_content", "hm"}}}};
  EXPECT_THAT(error(contents, thought), left_out("thoughts beside a content (reasoning_content)"));
  EXPECT_EQ(error("{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}{% endfor %}", thought), "");
}

// A turn that calls tools is trained from its first token to the special one that ends it.
TEST(Renderer, CallsOfToolsAreTrainedOn) {
  const ordered_json cases = goldens();
  const auto base = load_tokenizer(testdata("byte_level"));
  for (const ordered_json& one : cases) {
    const Example example = to_example(DataShape::kMessages, Row(one.at("row")), {"f.jsonl", 0, 1});
    if (!example.completion->calls_tools()) continue;
    const Renderer renderer(*base, make_chat_template(with_template(one.at("template"))));
    const RenderedTokens tokens = renderer.render_tokens(example.prompt, *example.completion);
    EXPECT_EQ(tokens.ids, one.at("ids").get<std::vector<int32_t>>());
    EXPECT_EQ(tokens.trainable, one.at("mask").get<std::vector<uint8_t>>());
    EXPECT_EQ(tokens.prompt_tokens, static_cast<int64_t>(renderer.prompt_tokens(example.prompt).size()));
  }
}

// The tokens that a template's {% generation %} marks are those that transformers masks.
TEST(Renderer, MarkedTurnsAreTrainedOn) {
  const auto base = load_tokenizer(testdata("byte_level"));
  for (const ordered_json& one : goldens()) {
    if (!one.contains("mask")) continue;
    const Example example = to_example(DataShape::kMessages, Row(one.at("row")), {"f.jsonl", 0, 1});
    const Renderer renderer(*base, make_chat_template(with_template(one.at("template"))),
                            {.train_on = TrainOn::kAssistantTurns});
    const RenderedTokens tokens = renderer.render_tokens(example.prompt, *example.completion);
    EXPECT_EQ(tokens.ids, one.at("ids").get<std::vector<int32_t>>());
    EXPECT_EQ(tokens.trainable, one.at("mask").get<std::vector<uint8_t>>());
  }
}

// A template that marks what an assistant says trains on the same as one that marks nothing.
TEST(Renderer, MarksFindTheTurnsThatPrefixesFind) {
  const auto base = load_tokenizer(testdata("byte_level"));
  const Messages turns = {{"user", "a"}, {"assistant", "one"}, {"user", "b"}, {"assistant", "two"}};
  const auto rendered = [&](const std::string& begin, const std::string& end) {
    const std::string jinja = "{% for m in messages %}<|im_start|>{{ m.role }} {% if m.role == 'assistant' %}" + begin +
                              "{{ m.content }}<|im_end|>" + end +
                              "{% else %}{{ m.content }}<|im_end|>{% endif %} {% endfor %}"
                              "{% if add_generation_prompt %}<|im_start|>assistant {% endif %}";
    const Renderer renderer(*base, make_chat_template(with_template(jinja)), {.train_on = TrainOn::kAssistantTurns});
    EXPECT_EQ(renderer.chat().marks_answers({}), !begin.empty());
    return renderer.render_tokens(turns);
  };
  const RenderedTokens marked = rendered("{% generation %}", "{% endgeneration %}"), plain = rendered("", "");
  EXPECT_EQ(marked.ids, plain.ids);
  EXPECT_EQ(marked.trainable, plain.trainable);
  EXPECT_EQ(marked.prompt_tokens, plain.prompt_tokens);
}

// An answer whose words its thoughts have too is tokenized as transformers tokenizes the whole text.
TEST(Renderer, AnswersThatStandInTheirThoughtsCutNoToken) {
  const auto base = load_tokenizer(testdata("byte_level"));
  int thoughts = 0;
  for (const ordered_json& one : goldens()) {
    const Example example = to_example(DataShape::kMessages, Row(one.at("row")), {"f.jsonl", 0, 1});
    if (!example.completion->more.contains("reasoning_content")) continue;
    ++thoughts;
    const std::string bare = std::regex_replace(
        one.at("template").get<std::string>(), std::regex("\\{%- (end)?generation %\\}"), "{%- if true %}{%- endif %}");
    for (const TrainOn train_on : {TrainOn::kCompletion, TrainOn::kAssistantTurns, TrainOn::kAllTokens}) {
      const Renderer renderer(*base, make_chat_template(with_template(bare)), {.train_on = train_on});
      EXPECT_FALSE(renderer.chat().marks_answers({}));
      const RenderedTokens tokens = renderer.render_tokens(example.prompt, *example.completion);
      EXPECT_EQ(tokens.ids, one.at("ids").get<std::vector<int32_t>>()) << one.at("row");
      if (train_on == TrainOn::kAllTokens) continue;
      EXPECT_EQ(tokens.trainable, one.at("mask").get<std::vector<uint8_t>>());
    }
  }
  EXPECT_GT(thoughts, 5);
}

TEST(Renderer, AMarkThatHasNoPlaceIsRefused) {
  const auto base = load_tokenizer(testdata("byte_level"));
  const Renderer renderer(
      *base,
      make_chat_template(with_template("{% macro said(m) %}{% generation %}{{ m }}{% endgeneration %}{% endmacro %}"
                                       "{% for m in messages %}{{ said(m.content) }}{% endfor %}")),
      {.train_on = TrainOn::kAssistantTurns});
  EXPECT_THAT(
      message_of<base::InputError>([&] {
        renderer.render_tokens(Messages{{"user", "a"}, {"assistant", "b"}});
      }),
      HasSubstr("{% generation %} around what the assistant says, got a conversation in which it marks nothing; "
                "try data.train_on: completion"));
}

}  // namespace
}  // namespace collimate::text
