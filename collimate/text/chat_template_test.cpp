#include "collimate/text/chat_template.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "collimate/host/atomic_file.h"
#include "collimate/host/file_io.h"
#include "collimate/text/character_tokenizer.h"
#include "collimate/text/files.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Mask = std::vector<uint8_t>;

CharacterTokenizer letters(const std::string& chat_template, const std::string& separator = "") {
  CharacterVocabulary vocabulary{.specials = {"$", "^", "#", "|"},
                                 .tokens = {},
                                 .bos = "^",
                                 .eos = "$",
                                 .pad = "#",
                                 .unk = "#",
                                 .separator = separator,
                                 .chat_template = chat_template};
  for (char c = 'a'; c <= 'z'; ++c) vocabulary.tokens.emplace_back(1, c);
  for (const char* other : {"U", "B", ":", " ", "\n"}) vocabulary.tokens.emplace_back(other);
  return CharacterTokenizer(std::move(vocabulary));
}

constexpr const char* kVerl =
    "{% for message in messages %}{% set role = message['role'] %}{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ sep_token }}{% endif %}";
constexpr const char* kUserBot =
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ 'User: ' + m['content'] + '\\n' }}"
    "{% elif m['role'] == 'assistant' %}{{ 'Bot: ' + m['content'] + eos_token + '\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Bot:' }}{% endif %}";

std::string masked(const Tokenizer& tokenizer, const RenderedTokens& tokens, uint8_t wanted) {
  Ids ids;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.trainable[i] == wanted) ids.push_back(tokens.ids[i]);
  }
  return tokenizer.decode(ids, false);
}

TEST(Renderer, TellsOfThoughtsThatTheTemplateLeavesOut) {
  // As DeepSeek-R1's, and as Qwen3's, which leaves out those of earlier turns.
  const std::string all = "{{ m.content.split('</think>')[-1] }}";
  const std::string earlier = "{{ m.content if loop.last else m.content.split('</think>')[-1] }}";
  const auto leaves_out = [](const std::string& answer, const Messages& prompt, const Message& last, TrainOn train_on) {
    const auto tokenizer = letters("{% for m in messages %}" + answer + "|{% endfor %}");
    return Renderer(tokenizer, make_chat_template(tokenizer), {.train_on = train_on}).leaves_out_thoughts(prompt, last);
  };
  const Message thinks = {"assistant", "<think>\nwell\n</think>b"}, opened = {"assistant", "well</think>b"};
  const Message beside = {"assistant", "b", {{"reasoning_content", "well"}}};
  const Messages one = {{"user", "a"}}, two = {{"user", "a"}, thinks, {"user", "c"}};
  for (const Message& answer : {thinks, opened}) {
    EXPECT_TRUE(leaves_out(all, one, answer, TrainOn::kCompletion));
    EXPECT_FALSE(leaves_out(earlier, one, answer, TrainOn::kCompletion));
  }
  EXPECT_FALSE(leaves_out(all, two, {"assistant", "b"}, TrainOn::kCompletion));
  EXPECT_TRUE(leaves_out(earlier, two, {"assistant", "b"}, TrainOn::kAssistantTurns));
  EXPECT_TRUE(leaves_out(earlier, two, {"assistant", "<think>\nsoon\n</think>b"}, TrainOn::kAssistantTurns));
  EXPECT_FALSE(leaves_out(all, one, {"assistant", "<think>\n\n</think>b"}, TrainOn::kCompletion));
  EXPECT_FALSE(leaves_out("{{ m.reasoning_content }}{{ m.content }}", one, beside, TrainOn::kCompletion));
  EXPECT_TRUE(leaves_out("{{ (m.reasoning_content or '')[:2] }}{{ m.content }}", one, beside, TrainOn::kCompletion));
}

TEST(ChatTemplate, TheModelsOwnHasItsDefaultSystemMessage) {
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  const auto chat = make_chat_template(*tokenizer);
  EXPECT_EQ(chat->render(Messages{{"user", "hi"}}, true),
            "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(chat->render(Messages{{"system", "Be brief."}, {"user", "hi"}, {"assistant", "yo"}}, false),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo"
            "<|im_end|>\n");
  EXPECT_EQ(chat->description(), "the model's own chat template");
}

TEST(ChatTemplate, WithoutATemplateContentsAreJoined) {
  const auto tokenizer = load_tokenizer(testdata("sentencepiece"));
  const auto chat = make_chat_template(*tokenizer);
  EXPECT_EQ(chat->render(Messages{{"user", "one "}, {"assistant", "two"}}, true), "one two");
  EXPECT_THAT(chat->description(), HasSubstr("no chat template"));
}

TEST(ChatTemplate, SeparatorAndTurns) {
  const auto verl = letters(kVerl, "|");
  EXPECT_EQ(make_chat_template(verl)->render(Messages{{"user", "ab"}}, true), "ab|");
  const auto turns = letters(kUserBot);
  EXPECT_EQ(make_chat_template(turns)->render(Messages{{"user", "ab"}, {"assistant", "c"}, {"user", "d"}}, true),
            "User: ab\nBot: c$\nUser: d\nBot:");
  EXPECT_THAT(message_of<base::InputError>([&] {
                make_chat_template(turns)->render(Messages{{"critic", "x"}}, true);
              }),
              HasSubstr("leaves out a message of 'critic'"));
}

TEST(ChatTemplate, AVariableMayBeOfTheTemplateWithToolsOrOfTheOther) {
  const TemporaryDirectory directory;
  const nlohmann::json templates = {
      {{"name", "default"}, {"template", "{{ messages[0].content }}{{ alone }}"}},
      {{"name", "tool_use"}, {"template", "{{ messages[0].content }}{{ tools[0].type }}{{ beside }}"}}};
  host::write_file_atomically(directory.path("tokenizer.json"),
                              host::read_file(testdata("sentencepiece/tokenizer.json")));
  host::write_file_atomically(directory.path("tokenizer_config.json"),
                              nlohmann::json{{"eos_token", "</s>"}, {"chat_template", templates}}.dump());
  const auto tokenizer = load_tokenizer(directory.path());
  const auto with = [&](const char* name) {
    return make_chat_template(*tokenizer, "auto", nlohmann::ordered_json{{name, "!"}});
  };
  const Messages messages = {{"user", "a"}};
  const TemplateInputs tools{.tools = {{{"type", "function"}}}};
  EXPECT_EQ(with("alone")->render(messages, false), "a!");
  EXPECT_EQ(with("alone")->render({messages, tools}, false), "afunction");
  EXPECT_EQ(with("beside")->render(messages, false), "a");
  EXPECT_EQ(with("beside")->render({messages, tools}, false), "afunction!");
  const auto chat = make_chat_template(*tokenizer);
  EXPECT_TRUE(chat->reads("alone"));
  EXPECT_TRUE(chat->reads("beside"));
  EXPECT_FALSE(chat->reads("another"));
  EXPECT_THAT(message_of<base::InputError>([&] { with("another"); }),
              HasSubstr("[chat_template_kwargs] expected variables that the chat template reads, got another, which it "
                        "does not (the model's own chat template; with tools: the model's tool_use); try leaving it"));
}

TEST(ChatTemplate, UnknownTemplatesAndChoicesAreErrors) {
  const auto strange = letters("{% for message in messages %}\n{% include 'other' %}");
  const Renderer renderer(strange, make_chat_template(strange));
  EXPECT_THAT(renderer.chat().description(), HasSubstr("cannot be read"));
  EXPECT_EQ(renderer.prompt_text(Prompt(std::string("ab"))), "ab");
  EXPECT_THAT(message_of<base::InputError>([&] {
                renderer.prompt_text(Messages{{"user", "ab"}});
              }),
              AllOf(HasSubstr("chat template line 2] expected for, if, set"),
                    HasSubstr("try models.<role>.chat_template (--chat-template) chatml, plain or user-bot")));
  EXPECT_THAT(make_chat_template(strange, "plain")->description(), HasSubstr("as configured"));
  EXPECT_THAT(message_of<base::InputError>([&] { make_chat_template(strange, "llama9"); }), HasSubstr("'llama9'"));
}

TEST(Renderer, TextPromptAndCompletion) {
  const auto tokenizer = letters("");
  const Renderer renderer(tokenizer, make_chat_template(tokenizer));
  const RenderedTokens tokens = renderer.render_tokens(Prompt(std::string("ab")), "cd");
  EXPECT_EQ(tokenizer.decode(tokens.ids, false), "^abcd$");
  EXPECT_EQ(tokens.trainable, (Mask{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(tokens.prompt_tokens, 3);
  EXPECT_EQ(renderer.prompt_tokens(Prompt(std::string("ab"))), (Ids{tokens.ids.begin(), tokens.ids.begin() + 3}));
  EXPECT_EQ(renderer.prompt_tokens(Prompt(Ids{5, 6})), (Ids{5, 6}));
  const Renderer open(tokenizer, make_chat_template(tokenizer), {.end_turn = false});
  EXPECT_EQ(tokenizer.decode(open.render_tokens(Prompt(std::string("ab")), "cd").ids, false), "^abcd");
}

// The answer of a finished conversation is trained on up to its stop token; the newline after it is not.
TEST(Renderer, ChatMlMask) {
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  const Renderer renderer(*tokenizer, make_chat_template(*tokenizer));
  const Prompt prompt = Messages{{"system", "s"}, {"user", "hi"}};
  const RenderedTokens tokens = renderer.render_tokens(prompt, "the cat");
  EXPECT_EQ(tokenizer->decode(tokens.ids, false),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nthe cat"
            "<|im_end|>\n");
  EXPECT_EQ(masked(*tokenizer, tokens, 1), "the cat<|im_end|>");
  const Ids start = renderer.prompt_tokens(prompt);
  ASSERT_EQ(static_cast<int64_t>(start.size()), tokens.prompt_tokens);
  EXPECT_TRUE(std::equal(start.begin(), start.end(), tokens.ids.begin()));
}

// A base model trained in ChatML would else say "<|im_end|>" in letters.
TEST(Renderer, EosEndsAnAnswerWhoseMarkIsNoSpecialToken) {
  CharacterVocabulary vocabulary{.specials = {"$"}, .tokens = {"<", "|", ">", "_", "\n"}, .eos = "$"};
  for (char c = 'a'; c <= 'z'; ++c) vocabulary.tokens.emplace_back(1, c);
  const CharacterTokenizer tokenizer(std::move(vocabulary));
  const Messages messages = {{"user", "a"}, {"assistant", "one"}, {"user", "b"}, {"assistant", "two"}};
  const Renderer renderer(tokenizer, make_chat_template(tokenizer, "chatml"), {.train_on = TrainOn::kAssistantTurns});
  const RenderedTokens tokens = renderer.render_tokens(messages);
  EXPECT_EQ(masked(tokenizer, tokens, 1), "onetwo$");
  const Ids prompt = renderer.prompt_tokens(Messages(messages.begin(), messages.end() - 1));
  ASSERT_EQ(static_cast<int64_t>(prompt.size()), tokens.prompt_tokens);
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), tokens.ids.begin()));
}

TEST(ChatTemplate, TheChosenOneIsSavedForWhoeverReadsTheModel) {
  const std::filesystem::path directory = std::filesystem::path(testing::TempDir()) / "saved_template";
  std::filesystem::create_directories(directory);
  const Messages messages = {{"user", "a"}, {"assistant", "b"}, {"user", "c"}};
  for (const std::string choice : {"chatml", "plain", "user-bot"}) {
    save_chat_template(choice, directory);
    const CharacterTokenizer reader = letters(host::read_file(directory / "chat_template.jinja"));
    EXPECT_EQ(make_chat_template(reader)->render(messages, true),
              make_chat_template(reader, choice)->render(messages, true))
        << choice;
  }
  std::filesystem::remove(directory / "chat_template.jinja");
  save_chat_template("auto", directory);
  EXPECT_FALSE(std::filesystem::exists(directory / "chat_template.jinja"));
}

TEST(Renderer, EveryAssistantTurnOrEverything) {
  const auto tokenizer = load_tokenizer(testdata("byte_level"));
  const Messages messages = {{"system", "s"}, {"user", "a"}, {"assistant", "one"}, {"user", "b"}, {"assistant", "two"}};
  const auto render = [&](TrainOn train_on) {
    const Renderer renderer(*tokenizer, make_chat_template(*tokenizer), {.train_on = train_on});
    return renderer.render_tokens(messages);
  };
  const RenderedTokens turns = render(TrainOn::kAssistantTurns);
  EXPECT_EQ(masked(*tokenizer, turns, 1), "one<|im_end|>two<|im_end|>");
  const RenderedTokens last = render(TrainOn::kCompletion);
  EXPECT_EQ(masked(*tokenizer, last, 1), "two<|im_end|>");
  EXPECT_EQ(last.ids, turns.ids);
  EXPECT_EQ(masked(*tokenizer, render(TrainOn::kAllTokens), 0), "");
  EXPECT_EQ(last.ids, tokenizer->encode(make_chat_template(*tokenizer)->render(messages, false)));
}

// A template that writes finished turns in another way than it opens them: what generation would make.
TEST(Renderer, SeparatorStandsBetweenPromptAndAnswer) {
  const auto tokenizer = letters(kVerl, "|");
  const Renderer renderer(tokenizer, make_chat_template(tokenizer));
  const RenderedTokens tokens = renderer.render_tokens(Prompt(Messages{{"user", "ab"}}), "cd");
  EXPECT_EQ(tokenizer.decode(tokens.ids, false), "ab|cd$");
  EXPECT_EQ(masked(tokenizer, tokens, 1), "cd$");
  const Renderer turns(tokenizer, make_chat_template(tokenizer), {.train_on = TrainOn::kAssistantTurns});
  const Messages two = {{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}};
  EXPECT_THAT(message_of<base::InputError>([&] { turns.render_tokens(two); }), HasSubstr("completion alone"));
}

TEST(Renderer, TextCanBecomeAUserMessage) {
  const auto tokenizer = letters(kUserBot);
  const Renderer renderer(tokenizer, make_chat_template(tokenizer), {.wrap_text = WrapText::kAsUserMessage});
  const RenderedTokens tokens = renderer.render_tokens(Prompt(std::string("ab")), "cd");
  EXPECT_EQ(renderer.prompt_text(Prompt(std::string("ab"))), "User: ab\nBot:");
  EXPECT_EQ(masked(tokenizer, tokens, 1), " cd$");
}

TEST(Renderer, CompletionGoesOnWithoutADummySpace) {
  const auto tokenizer = load_tokenizer(testdata("sentencepiece"));
  const Renderer renderer(*tokenizer, make_chat_template(*tokenizer));
  const RenderedTokens tokens = renderer.render_tokens(Prompt(std::string("the cat")), " sat");
  EXPECT_EQ(tokenizer->decode(tokens.ids), "the cat sat");
  EXPECT_EQ(tokens.ids.front(), 1);
  EXPECT_EQ(tokens.ids.back(), 2);
}

TEST(Renderer, AnAnswerThatSaysItsEndHasNoSecondOne) {
  const auto base = load_tokenizer(testdata("sentencepiece"));
  const Renderer renderer(*base, make_chat_template(*base));
  const Prompt prompt(std::string("the cat"));
  EXPECT_EQ(renderer.render_tokens(prompt, " sat</s>").ids, renderer.render_tokens(prompt, " sat").ids);
  const auto chat = load_tokenizer(testdata("byte_level"));
  const Renderer turns(*chat, make_chat_template(*chat));
  const auto rendered = [&](const std::string& answer) {
    return turns.render_tokens(Messages{{"user", "a"}, {"assistant", answer}}).ids;
  };
  EXPECT_EQ(rendered("one<|im_end|>"), rendered("one"));
}

// As apply_chat_template of transformers has it: bos where the template writes it, and only there.
TEST(Renderer, AConversationHasWhatItsTemplateWrites) {
  const auto rendered = [](const std::string& jinja, const std::string& choice) {
    const auto tokenizer = letters(jinja);
    const Renderer renderer(tokenizer, make_chat_template(tokenizer, choice));
    const Prompt prompt(Messages{{"user", "ab"}});
    const std::string trained = tokenizer.decode(renderer.render_tokens(prompt, "c").ids, false);
    EXPECT_TRUE(trained.starts_with(tokenizer.decode(renderer.prompt_tokens(prompt), false))) << trained;
    EXPECT_EQ(tokenizer.decode(renderer.prompt_tokens(Prompt(std::string("ab"))), false), "^ab");
    return trained;
  };
  EXPECT_EQ(rendered("{% for m in messages %}{{ m['content'] + eos_token }}{% endfor %}", "auto"), "ab$c$");
  EXPECT_EQ(rendered("{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}", "auto"), "^abc$");
  EXPECT_EQ(rendered("", "plain"), "abc$");
  EXPECT_EQ(rendered("", "auto"), "^abc$") << "no template: a text like any other";
}

// Templates strip the white space that Python knows.
TEST(ChatTemplate, BlanksAtTheEndsOfAMessageMayBeLeftOut) {
  const auto tokenizer = letters("{% for m in messages %}{{ m.content | trim }}{% endfor %}");
  const auto chat = make_chat_template(tokenizer);
  EXPECT_EQ(chat->render(Messages{{"user", "\u3000\x1fhi\v\f\u0085\u00a0"}}, false), "hi");
}

// A text that writes bos itself has it once, and no eos stands before the answer.
TEST(Renderer, OneBosAndNoEosInThePrompt) {
  const TemporaryDirectory directory;
  nlohmann::json file = read_json_file(testdata("sentencepiece/tokenizer.json"));
  file["post_processor"] = nullptr;
  host::write_file_atomically(directory.path("tokenizer.json"), file.dump());
  host::write_file_atomically(
      directory.path("tokenizer_config.json"),
      R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true, "add_eos_token": true})");
  const auto tokenizer = load_tokenizer(directory.path());
  const Renderer renderer(*tokenizer, make_chat_template(*tokenizer));
  EXPECT_EQ(renderer.prompt_tokens(Prompt(std::string("<s><unk>"))), (Ids{1, 0}));
  EXPECT_EQ(renderer.prompt_tokens(Prompt(std::string("<unk>"))), (Ids{1, 0}));
  EXPECT_EQ(renderer.render_tokens(Prompt(std::string("<unk>")), "<unk>").ids, (Ids{1, 0, 0, 2}));
}

TEST(Renderer, LastMessageMustBeTheAssistants) {
  const auto tokenizer = letters("");
  const Renderer renderer(tokenizer, make_chat_template(tokenizer));
  EXPECT_EQ(message_of<base::InputError>([&] {
              renderer.render_tokens(Messages{{"user", "x"}});
            }),
            "[messages] expected a last message by the assistant, got 'user'");
}

}  // namespace
}  // namespace collimate::text
