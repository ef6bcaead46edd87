#include "collimate/text/dataset.h"

#include <gmock/gmock.h>

#include "collimate/host/atomic_file.h"
#include "collimate/text/files.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const RowLocation kHere{"f.jsonl", 0, 7};

Example example_of(DataShape expected, const std::string& text) {
  Row row = Row::parse(text);
  const auto shape = recognise_shape(row);
  EXPECT_TRUE(shape.has_value()) << text;
  EXPECT_EQ(shape_name(shape.value_or(DataShape::kText)), shape_name(expected));
  return to_example(expected, std::move(row), kHere);
}

std::string error_of(const std::string& text) {
  Row row = Row::parse(text);
  const auto shape = recognise_shape(row);
  EXPECT_TRUE(shape.has_value()) << text;
  return message_of<base::InputError>([&] { to_example(*shape, std::move(row), kHere); });
}

Messages messages(const Prompt& prompt) { return std::get<Conversation>(prompt).turns; }
std::string text(const Prompt& prompt) { return std::get<std::string>(prompt); }

TEST(DataShape, Trl) {
  auto example = example_of(DataShape::kPromptCompletion, R"({"prompt": "p", "completion": "c", "x": 1})");
  EXPECT_EQ(text(example.prompt), "p");
  EXPECT_EQ(example.completion->content, "c");
  EXPECT_EQ(example.extra, json({{"x", 1}}));
  example = example_of(DataShape::kPromptCompletion,
                       R"({"prompt": [{"role": "user", "content": "p"}],
                           "completion": [{"role": "assistant", "content": "c"}]})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"user", "p"}}));
  EXPECT_EQ(example.completion->content, "c");
  example = example_of(DataShape::kPreference, R"({"prompt": "p", "chosen": "c", "rejected": "r"})");
  EXPECT_EQ(example.chosen->content, "c");
  EXPECT_EQ(example.rejected->content, "r");
  example = example_of(DataShape::kLabelled, R"({"prompt": "p", "completion": "c", "label": false})");
  EXPECT_EQ(example.label, false);
  example = example_of(DataShape::kText, R"({"text": "t"})");
  EXPECT_EQ(example.completion->content, "t");
}

TEST(DataShape, PromptsWithGroundTruthAndColumns) {
  auto example = example_of(DataShape::kPrompt, R"({"prompt": "p", "answer": "42", "level": 3})");
  EXPECT_EQ(example.ground_truth, "42");
  EXPECT_EQ(example.extra, json({{"answer", "42"}, {"level", 3}}));
  example = example_of(DataShape::kPrompt, R"({"prompt": "p", "label": "42"})");
  EXPECT_EQ(example.ground_truth, "42");
  EXPECT_FALSE(example.label);
  example = example_of(DataShape::kPrompt, R"({"prompt": [5, 6, 7]})");
  EXPECT_EQ(std::get<std::vector<int32_t>>(example.prompt), (std::vector<int32_t>{5, 6, 7}));
  example = example_of(DataShape::kVerl, R"({"data_source": "d", "prompt": [{"role": "user", "content": "p"}],
      "reward_model": {"style": "rule", "ground_truth": {"target": 9}}, "extra_info": {"index": 4}})");
  EXPECT_EQ(example.ground_truth, json({{"target", 9}}));
  EXPECT_EQ(example.extra["extra_info"]["index"], 4);
  EXPECT_EQ(example.extra["reward_model"]["style"], "rule");
}

TEST(DataShape, Messages) {
  auto example = example_of(DataShape::kMessages, R"({"messages": [{"role": "system", "content": "s"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": "c"}]})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"system", "s"}, {"user", "ab"}}));
  EXPECT_EQ(example.completion->content, "c");
  example = example_of(DataShape::kMessages, R"({"messages": [{"role": "user", "content": "p"}], "solution": 4})");
  EXPECT_FALSE(example.completion);
  EXPECT_EQ(example.ground_truth, 4);
  example = example_of(DataShape::kRejectedResponse,
                       R"({"messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "c"}],
                           "rejected_response": "r"})");
  EXPECT_EQ(example.chosen->content, "c");
  EXPECT_EQ(example.rejected->content, "r");
  example = example_of(DataShape::kLabelled,
                       R"({"messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "c"}],
                           "kto_tag": true})");
  EXPECT_EQ(example.label, true);
  EXPECT_EQ(example.completion->content, "c");
}

TEST(DataShape, AlpacaShareGptAndQuestions) {
  auto example = example_of(DataShape::kAlpaca, R"({"instruction": "do", "input": "this", "output": "o",
      "system": "s", "history": [["q", "a"]]})");
  EXPECT_EQ(messages(example.prompt),
            (Messages{{"system", "s"}, {"user", "q"}, {"assistant", "a"}, {"user", "do\nthis"}}));
  EXPECT_EQ(example.completion->content, "o");
  example = example_of(DataShape::kAlpaca, R"({"instruction": "do", "input": "", "chosen": "c", "rejected": "r"})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"user", "do"}}));
  EXPECT_EQ(example.rejected->content, "r");
  example = example_of(DataShape::kShareGpt, R"({"conversations": [{"from": "human", "value": "h"},
      {"from": "function_call", "value": "f"}, {"from": "observation", "value": "o"},
      {"from": "gpt", "value": "g"}]})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"user", "h"}, {"assistant", "f"}, {"tool", "o"}}));
  EXPECT_EQ(example.completion->content, "g");
  example = example_of(DataShape::kShareGpt, R"({"conversations": [{"from": "human", "value": "h"}],
      "chosen": {"from": "gpt", "value": "c"}, "rejected": {"from": "gpt", "value": "r"}})");
  EXPECT_EQ(example.chosen->content, "c");
  example = example_of(DataShape::kQuestionAnswer, R"({"question": "q", "answer": "a\n#### 4"})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"user", "q"}}));
  EXPECT_EQ(example.completion->content, "a\n#### 4");
  EXPECT_EQ(example.ground_truth, "a\n#### 4");
  EXPECT_EQ(example.extra, json({{"answer", "a\n#### 4"}}));
}

// ms-swift writes them beside every shape.
TEST(DataShape, SystemAndHistoryAreTurnsBeforeThePrompt) {
  const std::string columns = R"(, "system": "s", "history": [["x", "y"]]})";
  const std::string conversation = R"("messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "b"}])",
                    question = R"([{"role": "user", "content": "a"}])";
  const std::vector<std::pair<DataShape, std::string>> rows = {
      {DataShape::kPromptCompletion, R"({"query": "a", "response": "b")"},
      {DataShape::kPromptCompletion, R"({"completion": "b", "prompt": )" + question},
      {DataShape::kPreference, R"({"prompt": "a", "chosen": "b", "rejected": "r")"},
      {DataShape::kPreference, R"({"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
          "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "r"}])"},
      {DataShape::kMessages, "{" + conversation},
      {DataShape::kRejectedResponse, "{\"rejected_response\": \"r\", " + conversation},
      {DataShape::kLabelled, "{\"label\": true, " + conversation},
      {DataShape::kVerl, R"({"data_source": "d", "prompt": )" + question},
      {DataShape::kPrompt, R"({"prompt": "a")"},
      {DataShape::kAlpaca, R"({"instruction": "a", "output": "b")"},
      {DataShape::kShareGpt, R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}])"},
      {DataShape::kQuestionAnswer, R"({"question": "a", "answer": "b")"},
  };
  for (const auto& [shape, row] : rows) {
    const auto example = example_of(shape, row + columns);
    EXPECT_EQ(messages(example.prompt), (Messages{{"system", "s"}, {"user", "x"}, {"assistant", "y"}, {"user", "a"}}))
        << row;
    EXPECT_FALSE(example.extra.contains("system") || example.extra.contains("history")) << row;
    EXPECT_FALSE(example_of(shape, row + R"(, "system": "", "history": []})").prompt == example.prompt) << row;
  }
  // A turn that stands there already is not said twice.
  EXPECT_EQ(messages(example_of(DataShape::kMessages, R"({"system": "s", "messages": [
      {"role": "system", "content": "s"}, {"role": "user", "content": "a"}]})")
                         .prompt),
            (Messages{{"system", "s"}, {"user", "a"}}));
  EXPECT_EQ(text(example_of(DataShape::kPrompt, R"({"prompt": "a", "system": "", "history": null})").prompt), "a");
}

TEST(DataShape, SystemAndHistoryThatCannotBeTurnsAreRefused) {
  EXPECT_EQ(error_of(R"({"text": "t", "system": "s"})"),
            "[f.jsonl:7 column system] expected no such column beside plain text, got one; try a prompt column of its "
            "own, or data columns: {system: another_name}");
  EXPECT_THAT(error_of(R"({"chosen": "p a", "rejected": "p b", "history": [["x", "y"]]})"),
              HasSubstr("column history] expected no such column beside chosen and rejected that hold their prompt"));
  EXPECT_THAT(error_of(R"({"prompt": [5], "system": "s"})"), HasSubstr("text or messages beside it, got token ids"));
  EXPECT_THAT(error_of(R"({"system": "s", "messages": [{"role": "system", "content": "other"},
                           {"role": "user", "content": "a"}]})"),
              HasSubstr("column system] expected messages without a system message beside it"));
  EXPECT_EQ(error_of(R"({"prompt": "a", "history": [["x"]]})"),
            "[f.jsonl:7 column history] expected pairs of texts, got [\"x\"]");
  EXPECT_THAT(error_of(R"({"prompt": "a", "history": {"x": "y"}})"), HasSubstr("pairs of texts, got object"));
  EXPECT_THAT(error_of(R"({"prompt": "a", "system": 5})"), HasSubstr("column system] expected text, got number"));
}

TEST(DataShape, PairsThatShareTheirPrompt) {
  auto example = example_of(DataShape::kPreference, R"({"chosen": "\n\nHuman: a\n\nAssistant: yes it",
      "rejected": "\n\nHuman: a\n\nAssistant: yes no"})");
  EXPECT_EQ(text(example.prompt), "\n\nHuman: a\n\nAssistant:");
  EXPECT_EQ(example.chosen->content, " yes it");
  EXPECT_EQ(example.rejected->content, " yes no");
  example = example_of(DataShape::kPreference, R"({"chosen": "sky is blue", "rejected": "sky is black"})");
  EXPECT_EQ(text(example.prompt), "sky is");
  EXPECT_EQ(example.chosen->content, " blue");
  example = example_of(DataShape::kPreference,
                       R"({"chosen": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "c"}],
                           "rejected": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "r"}]})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"user", "p"}}));
  EXPECT_EQ(example.rejected->content, "r");
}

// UltraFeedback: the prompt's text beside whole conversations. Their turns are the prompt, as TRL has it.
TEST(DataShape, ConversationsBesideAPrompt) {
  const std::string turns = R"({"role": "system", "content": "s"}, {"role": "user", "content": "p"},
      {"role": "assistant", "content": "a"}, {"role": "user", "content": "q"}, )";
  const auto conversation = [&](const std::string& answer) {
    return "[" + turns + R"({"role": "assistant", "content": ")" + answer + "\"}]";
  };
  const Messages prompt = {{"system", "s"}, {"user", "p"}, {"assistant", "a"}, {"user", "q"}};
  const std::string pair = "\"chosen\": " + conversation("c") + ", \"rejected\": " + conversation("r") + "}";
  for (const std::string given : {"{", "{\"prompt\": \"p\", ", "{\"prompt\": ["}) {
    std::string row = given + (given.ends_with('[') ? turns.substr(0, turns.rfind(',')) + "], " : "") + pair;
    const auto example = example_of(DataShape::kPreference, row);
    EXPECT_EQ(messages(example.prompt), prompt) << row;
    EXPECT_EQ(example.chosen->content, "c");
    EXPECT_EQ(example.rejected->content, "r");
  }
  auto example =
      example_of(DataShape::kPromptCompletion, R"({"prompt": "p", "completion": )" + conversation("c") + "}");
  EXPECT_EQ(messages(example.prompt), prompt);
  EXPECT_EQ(example.completion->content, "c");
  example = example_of(DataShape::kRejectedResponse,
                       "{\"messages\": " + conversation("c") + ", \"rejected_messages\": " + conversation("r") + "}");
  EXPECT_EQ(messages(example.prompt), prompt);
  EXPECT_EQ(example.rejected->content, "r");
}

TEST(DataShape, ATextBesideTheAssistantsMessageIsWhatTheUserSays) {
  const auto example = example_of(DataShape::kPreference,
                                  R"({"prompt": "p", "chosen": [{"role": "assistant", "content": "c"}],
                                      "rejected": {"role": "assistant", "content": "r"}})");
  EXPECT_EQ(messages(example.prompt), (Messages{{"user", "p"}}));
  EXPECT_EQ(example.chosen->content, "c");
  EXPECT_EQ(example.rejected->content, "r");
}

TEST(DataShape, ConversationsThatDoNotAgreeAreRefused) {
  const std::string user = R"({"role": "user", "content": "p"})", answer = R"({"role": "assistant", "content": "a"})";
  const auto pair = [](const std::string& prompt, const std::string& chosen, const std::string& rejected) {
    return error_of("{" + prompt + "\"chosen\": [" + chosen + "], \"rejected\": [" + rejected + "]}");
  };
  const std::string whole = user + "," + answer;
  EXPECT_EQ(pair("\"prompt\": \"other\", ", whole, whole),
            "[f.jsonl:7 column prompt] expected the user's first message in chosen, got another text; try data "
            "columns: {prompt: first_prompt}, which leaves the prompt to the messages");
  EXPECT_EQ(pair("", whole, whole + "," + user),
            "[f.jsonl:7 column rejected] expected a last message by the assistant, got 'user'");
  EXPECT_EQ(error_of("{\"prompt\": \"p\", \"chosen\": " + user + ", \"rejected\": " + answer + "}"),
            "[f.jsonl:7 column chosen] expected a last message by the assistant, got 'user'");
  const std::string others =
      "expected before the answer the turns of the prompt, as the row's other columns have it, "
      "or none, got ";
  EXPECT_EQ(pair("", whole, whole + "," + whole), "[f.jsonl:7 column rejected] " + others + "3 others");
  EXPECT_EQ(pair("\"prompt\": [5, 6], ", whole, whole), "[f.jsonl:7 column chosen] " + others + "1 others");
  EXPECT_THAT(pair("", answer, answer), HasSubstr("messages that chosen and rejected share, got none"));
  // The columns as the row has them.
  EXPECT_THAT(error_of("{\"query\": \"other\", \"response\": [" + whole + "]}"),
              AllOf(HasSubstr("column query] expected the user's first message in response"),
                    HasSubstr("try data columns: {query: first_prompt}")));
  EXPECT_THAT(error_of("{\"query\": \"p\", \"response\": [" + user + "]}"),
              HasSubstr("column response] expected a last"));
}

// Read as an empty text, a content of null would teach to say nothing. See messages_json_test.cpp for calls of tools.
TEST(DataShape, MissingContentsAreRefused) {
  const auto answer = [](const std::string& parts) {
    return R"({"messages": [{"role": "user", "content": "p"}, {"role": "assistant", )" + parts + "}]}";
  };
  EXPECT_THAT(error_of(answer(R"("content": null, "function_call": {"name": "f"})")),
              HasSubstr("messages without function_call"));
  EXPECT_EQ(error_of(answer(R"("content": null)")),
            "[f.jsonl:7 column messages] expected a message's content as text, got null");
  EXPECT_THAT(error_of(answer(R"("content": [{"type": "text", "text": 5}])")), HasSubstr("content parts of type text"));
  EXPECT_THAT(error_of(answer(R"("content": [{"type": 5, "text": "c"}])")), HasSubstr("content parts of type text"));
  EXPECT_EQ(example_of(DataShape::kMessages, answer(R"("content": "c", "tool_calls": null)")).completion->content, "c");
  EXPECT_EQ(example_of(DataShape::kMessages, answer(R"("content": "c", "tool_calls": [])")).completion->content, "c");
}

TEST(DataShape, BadRowsNameFileLineAndColumn) {
  EXPECT_EQ(error_of(R"({"prompt": ""})"), "[f.jsonl:7 column prompt] expected a prompt, got an empty text");
  EXPECT_EQ(error_of(R"({"prompt": null, "x": 1})"), "[f.jsonl:7 column prompt] expected a value, got none");
  EXPECT_EQ(error_of(R"({"prompt": 5})"),
            "[f.jsonl:7 column prompt] expected a prompt (text, messages or ids), got number");
  EXPECT_EQ(error_of(R"({"prompt": [{"role": "user"}]})"),
            "[f.jsonl:7 column prompt] expected a message {role, content} or {from, value}, got {\"role\":\"user\"}");
  EXPECT_EQ(error_of(R"({"prompt": [1, -2]})"), "[f.jsonl:7 column prompt] expected token ids, got -2");
  EXPECT_THAT(error_of(R"({"messages": []})"), HasSubstr("expected a list of messages"));
  EXPECT_THAT(error_of(R"({"messages": [{"role": "assistant", "content": "x"}]})"),
              HasSubstr("a message before the assistant's"));
  EXPECT_THAT(error_of(R"({"instruction": "", "output": "x"})"), HasSubstr("column instruction] expected a prompt"));
  EXPECT_THAT(error_of(R"({"prompt": "p", "completion": 4})"), HasSubstr("column completion] expected text"));
  EXPECT_THAT(error_of(R"({"chosen": "a", "rejected": "b"})"), HasSubstr("chosen and rejected share"));
  EXPECT_FALSE(recognise_shape(json::parse(R"({"foo": 1})")));
}

class DatasetFile : public testing::Test {
 protected:
  DataSource source(const std::string& name, const std::string& content) {
    host::write_file_atomically(directory_.path(name), content);
    return {directory_.path(name)};
  }
  TemporaryDirectory directory_;
};

TEST_F(DatasetFile, SourcesJoinAndTheVerdictSaysWhatWasSeen) {
  DataSource second = source("b.json", R"([{"problem": "x", "n": 1}])");
  second.columns = {{"problem", "prompt"}};
  second.weight = 0.5;
  const auto data = Dataset::read({source("a.jsonl", "{\"prompt\": \"p\", \"completion\": \"c\"}\n"), second});
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(text(data.example(1).prompt), "x");
  const std::string a = directory_.path("a.jsonl"), b = directory_.path("b.json");
  EXPECT_EQ(data.verdict(", which rewards get"),
            (std::vector{a + ": 1 row of prompt + completion, read as prompt (text), completion",
                         b + ": 1 row of prompts, read as prompt (text); other columns, which rewards get: n"}));
  EXPECT_EQ(data.weights(), (std::vector<RowWeight>{{1, 1.0}, {1, 0.5}}));
}

TEST_F(DatasetFile, ColumnsAreRenamedAllAtOnce) {
  DataSource swapped = source("a.jsonl", R"({"prompt": "p", "chosen": "bad", "rejected": "good"})");
  swapped.columns = {{"chosen", "rejected"}, {"rejected", "chosen"}};
  const auto data = Dataset::read({swapped});
  EXPECT_EQ(data.example(0).chosen->content, "good");
  EXPECT_EQ(data.example(0).rejected->content, "bad");
  DataSource moved = source("b.jsonl", R"({"a": "p", "prompt": "old"})");
  moved.columns = {{"a", "prompt"}, {"prompt", "before"}};
  EXPECT_EQ(text(Dataset::read({moved}).example(0).prompt), "p");
  EXPECT_EQ(Dataset::read({moved}).example(0).extra, json({{"before", "old"}}));
}

TEST_F(DatasetFile, RenamingOverwritesNoColumn) {
  const auto error = [&](const std::map<std::string, std::string>& columns) {
    DataSource renamed = source("a.jsonl", R"({"q": "new", "r": "other", "prompt": "old"})");
    renamed.columns = columns;
    return message_of<base::InputError>([&] { Dataset::read({renamed}); });
  };
  EXPECT_EQ(error({{"q", "prompt"}}), "[" + directory_.path("a.jsonl") +
                                          ":1] expected no column 'prompt' where data columns has q: prompt, got one; "
                                          "try data columns: {prompt: another_name} too");
  EXPECT_THAT(error({{"q", "x"}, {"r", "x"}}), HasSubstr("no column 'x' where data columns has r: x"));
  EXPECT_THAT(error({{"question", "prompt"}}),
              HasSubstr(":1] expected column 'question' of data columns, got the columns "));
}

TEST_F(DatasetFile, FingerprintFollowsTheContent) {
  const auto print = [&](const std::string& rows) { return Dataset::read({source("a.jsonl", rows)}).fingerprint(); };
  const uint64_t one = print("{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n");
  EXPECT_EQ(print("{\"prompt\":\"a\"}\n\n{\"prompt\": \"b\"}"), one);
  EXPECT_NE(print("{\"prompt\": \"b\"}\n{\"prompt\": \"a\"}\n"), one);
  EXPECT_NE(print("{\"prompt\": \"a\"}\n{\"prompt\": \"b\", \"answer\": 1}\n"), one);
}

TEST_F(DatasetFile, Errors) {
  const auto error = [&](const std::string& content) {
    return message_of<base::InputError>([&] { Dataset::read({source("a.jsonl", content)}); });
  };
  const std::string path = directory_.path("a.jsonl");
  EXPECT_EQ(error("\n"), "[data " + path + "] expected at least one row, got an empty file");
  EXPECT_EQ(error("{\"prompt\": \"a\"}\n{\"answer\": 1}\n"),
            "[" + path + ":2 column prompt] expected a value, got none");
  EXPECT_THAT(error("{\"foo\": 1, \"bar\": 2}\n"), HasSubstr(path + ":1] expected columns of a known shape"));
  EXPECT_THAT(error("{\"instruction\": \"a\", \"context\": \"b\", \"response\": \"c\"}\n"),
              HasSubstr("columns: {instruction: prompt, response: completion}}"));
  EXPECT_THAT(error("{\"foo\": 1, \"bar\": 2}\n"), HasSubstr("got foo, bar; try saying which is which: {path: "));
  EXPECT_THAT(error("{\"ctx\": \"a\", \"endings\": [\"b\", \"c\"], \"label\": \"1\"}\n"),
              HasSubstr("columns: {ctx: question, endings: choices, label: answer}} in the place of the path"));
  EXPECT_THAT(error("{\"data\": [{\"prompt\": \"a\"}]}\n"),
              HasSubstr("got one object whose 'data' is a list of rows; try jq -c '.data[]' " + path));
  EXPECT_THAT(message_of<base::InputError>([&] { Dataset::read({source("a.json", R"({"data": [{"x": 1}]})")}); }),
              HasSubstr("got one object whose 'data' is a list of rows; try jq -c '.data[]' "));
  DataSource renamed = source("a.jsonl", "{\"foo\": 1}\n");
  renamed.columns = {{"question", "prompt"}};
  EXPECT_THAT(message_of<base::InputError>([&] { Dataset::read({renamed}); }), HasSubstr("column 'question'"));
  EXPECT_THAT(message_of<base::InputError>([] { Dataset::read({}); }), HasSubstr("no source of data"));
}

TEST_F(DatasetFile, RequireNamesTheFirstRowWithoutThePart) {
  const auto data = Dataset::read(
      {source("a.jsonl", "{\"prompt\": \"a\", \"answer\": 1}\n{\"prompt\": \"a\"}\n{\"prompt\": \"a\"}\n")});
  EXPECT_EQ(message_of<base::InputError>([&] { data.require("ground_truth", "reward rule gsm8k"); }),
            "[" + directory_.path("a.jsonl") +
                ":2] expected ground_truth, which reward rule gsm8k needs, got a row "
                "without it");
  EXPECT_THAT(message_of<base::InputError>([&] { data.require("chosen", "dpo"); }), HasSubstr("a.jsonl:1]"));
}

// Real files: rows, shape and first row.
TEST(SharedData, EveryFileIsRecognised) {
  struct Expected {
    const char* file;
    int64_t rows;
    const char* shape;
  };
  const std::vector<Expected> files = {
      {"gsm8k/test.jsonl", 1319, "question + answer"},
      {"llamafactory-demo/identity.json", 91, "alpaca"},
      {"llamafactory-demo/dpo_en_demo.json", 300, "sharegpt"},
      {"llamafactory-demo/kto_en_demo.json", 300, "KTO"},
      {"preferences/alpaca-eval-preferences/test.jsonl", 1500, "preference pairs"},
      {"preferences/rasbt-instruction/instruction-data-with-preference.json", 1100, "alpaca"},
      {"countdown/train.parquet", 8001, "verl"},
      {"models/verl-arith-llama-random/train.parquet", 800, "prompts"},
      {"models/verl-arith-llama-random/test.parquet", 200, "prompts"},
  };
  if (shared_data("gsm8k").empty()) GTEST_SKIP() << "no shared data on this machine";
  for (const Expected& expected : files) {
    const auto data = Dataset::read({{shared_data(expected.file)}});
    EXPECT_EQ(data.size(), expected.rows) << expected.file;
    EXPECT_THAT(data.verdict()[0], HasSubstr(expected.shape));
  }
  const auto arithmetic = Dataset::read({{shared_data("models/verl-arith-llama-random/train.parquet")}});
  EXPECT_EQ(messages(arithmetic.example(0).prompt), (Messages{{"user", "8,3:9,4"}}));
  const auto countdown = Dataset::read({{shared_data("countdown/train.parquet")}});
  EXPECT_EQ(countdown.example(0).ground_truth, json::parse(R"({"numbers": [44, 19, 35], "target": 98})"));
}

}  // namespace
}  // namespace collimate::text
