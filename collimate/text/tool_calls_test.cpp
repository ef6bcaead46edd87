#include "collimate/text/tool_calls.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "collimate/base/stripped.h"
#include "collimate/text/character_tokenizer.h"
#include "collimate/text/chat_template.h"

namespace collimate::text {
namespace {

using Calls = std::vector<ToolCall>;

using nlohmann::ordered_json;

const ordered_json kTools = ordered_json::parse(R"([{"type": "function", "function": {"name": "add", "parameters":
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "array"}}}}},
    {"type": "function", "function": {"name": "now"}}])");

// A text given in pieces of so many bytes.
CallReader::Read read_in_pieces(CallForm form, const std::string& text, size_t bytes,
                                const ordered_json& tools = kTools) {
  CallReader reader(form, tools);
  CallReader::Read all;
  for (size_t at = 0; at <= text.size(); at += bytes) {
    const CallReader::Read read = reader.read(text.substr(at, bytes), at + bytes > text.size());
    all.text += read.text;
    all.thoughts += read.thoughts;
    all.calls.insert(all.calls.end(), read.calls.begin(), read.calls.end());
  }
  EXPECT_EQ(reader.any(), !all.calls.empty());
  return all;
}

void expect_read(CallForm form, const std::string& answer, const std::string& text, const Calls& calls) {
  for (const size_t bytes : {size_t{1}, size_t{2}, size_t{7}, answer.size() + 1}) {
    const CallReader::Read read = read_in_pieces(form, answer, bytes);
    EXPECT_EQ(read.text, text) << answer << " by " << bytes;
    EXPECT_EQ(read.calls, calls) << answer << " by " << bytes;
  }
}

const Calls kAdd = {{"add", R"({"b": 1, "a": "}"})"}};
const std::string kAddJson = R"({"name": "add", "arguments": {"b": 1, "a": "}"}})";

TEST(CallReader, ReadsTaggedCallsBesideText) {
  const std::string tagged = "<tool_call>\n" + kAddJson + "\n</tool_call>";
  expect_read(CallForm::kTagged, tagged, "", kAdd);
  expect_read(CallForm::kTagged, "Let me see.\n\n" + tagged + "\n", "Let me see.", kAdd);
  expect_read(CallForm::kTagged, tagged + "\n" + tagged, "", {kAdd[0], kAdd[0]});
  expect_read(CallForm::kTagged, tagged + " done", " done", kAdd);
  expect_read(CallForm::kTagged, "a < b <tool_cal ", "a < b <tool_cal ", {});
}

TEST(CallReader, WhatIsNoCallIsText) {
  for (const std::string answer :
       {"", " plain\n", "<tool_call>{\"name\": \"add\"", "<tool_call>{\"name\": add}</tool_call>",
        "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>", "<tool_call>[[[[</tool_call> \n",
        "<tool_call>{\"name\": \"add\", \"arguments\": 5}</tool_call>"})
    expect_read(CallForm::kTagged, answer, answer, {});
  for (const CallForm form : {CallForm::kObject, CallForm::kList})
    for (const std::string answer : {"", "\nplain ", R"({"answer": 5})", R"({"name": "other", "arguments": {}})",
                                     R"([{"name": "add"}, 5])", "[TOOL_CALLS", R"({"name": "add")", "[1] is a list"})
      expect_read(form, answer, answer, {});
}

TEST(CallReader, ReadsCallsThatStandAlone) {
  expect_read(CallForm::kObject, R"({"name": "now", "parameters": {}})", "", {{"now", "{}"}});
  expect_read(CallForm::kObject, "\n" + kAddJson + "; " + R"({"name": "now"})", "", {kAdd[0], {"now", "{}"}});
  expect_read(CallForm::kList, "[TOOL_CALLS] [" + kAddJson + ", " + kAddJson + "]", "", {kAdd[0], kAdd[0]});
  expect_read(CallForm::kList, "[" + kAddJson + "]", "", kAdd);
}

// As Qwen3-Coder and GLM 4.5 write them: a value is a text or JSON, by the type that the tool's definition says.
TEST(CallReader, ReadsArgumentsOneByOne) {
  const Calls both = {{"add", R"({"a":"1","b":2,"c":[1],"d":"x"})"}};
  const std::string function =
      "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n<parameter=c>\n"
      "[1]\n</parameter>\n<parameter=d>\nx\n</parameter>\n</function>\n</tool_call>";
  expect_read(CallForm::kFunction, "So: " + function, "So:", both);
  expect_read(CallForm::kFunction, function + "\n" + function, "", {both[0], both[0]});
  const auto pair = [](const std::string& key, const std::string& value) {
    return "<arg_key>" + key + "</arg_key>\n<arg_value>" + value + "</arg_value>\n";
  };
  const std::string keys =
      "<tool_call>add\n" + pair("a", "1") + pair("b", "2") + pair("c", "[1]") + pair("d", "x") + "</tool_call>";
  expect_read(CallForm::kKeys, "\n" + keys, "", both);
  expect_read(CallForm::kKeys, "<tool_call>now</tool_call>", "", {{"now", "{}"}});
  const std::string lines = "<tool_call><function=add><parameter=a>\n x\n\n</parameter></function></tool_call>";
  expect_read(CallForm::kFunction, lines, "", {{"add", R"({"a":" x\n"})"}});
  const std::string broken = "<tool_call><function=add><parameter=b>2</function></tool_call>";
  expect_read(CallForm::kFunction, broken, broken, {});
  const std::string other = "<tool_call>other\n" + pair("a", "1") + "</tool_call>";
  expect_read(CallForm::kKeys, other, other, {});
}

TEST(CallReader, ReadsCallsOfDeepSeek) {
  const std::string begin = "<｜tool▁call▁begin｜>", separator = "<｜tool▁sep｜>", end = "<｜tool▁call▁end｜>";
  const std::string fenced = begin + "function" + separator + "add\n```json\n{\"b\": 1}\n```" + end;
  const std::string plain = begin + "now" + separator + "{}" + end;
  const auto all = [](const std::string& calls) { return "<｜tool▁calls▁begin｜>" + calls + "<｜tool▁calls▁end｜>"; };
  const ToolCall add{"add", R"({"b": 1})"}, now{"now", "{}"};
  expect_read(CallForm::kDeepSeek, "I look. " + all(fenced + "\n" + plain), "I look.", {add, now});
  for (const std::string& broken : {all(fenced + "x"), all(begin + "add" + end), all("")})
    expect_read(CallForm::kDeepSeek, broken, broken, {});
}

TEST(CallReader, MarksAheadMayBeShown) {
  expect_read(CallForm::kObject, "<|python_tag|>" + kAddJson, "", kAdd);
  expect_read(CallForm::kNamed, "[TOOL_CALLS]add[ARGS]{\"b\": 1}[TOOL_CALLS]now[ARGS]{}", "",
              {{"add", R"({"b": 1})"}, {"now", "{}"}});
  expect_read(CallForm::kNamed, "add{\"b\": 1}", "", {{"add", R"({"b": 1})"}});
  for (const std::string text : {"<|python", "[TOOL_CALLS]other[ARGS]{}", "added value", "add", "nowhere {}"})
    expect_read(text.starts_with('<') ? CallForm::kObject : CallForm::kNamed, text, text, {});
}

TEST(CallReader, TextMayStandAheadOfMarksAndBehindCalls) {
  const std::string named = "[TOOL_CALLS]add[ARGS]{\"a\": \"[TOOL_CALLS]\"}";
  const ToolCall add{"add", R"({"a": "[TOOL_CALLS]"})"}, now{"now", "{}"};
  expect_read(CallForm::kNamed, "Let me see. " + named, "Let me see.", {add});
  expect_read(CallForm::kNamed, named + " done", " done", {add});
  expect_read(CallForm::kNamed, "add{\"a\": \"[TOOL_CALLS]\"}\nnow{} and now", " and now", {add, now});
  expect_read(CallForm::kNamed, named + "[TOOL_CALLS]no", "[TOOL_CALLS]no", {add});
  expect_read(CallForm::kNamed, "The mark [TOOL_CALLS] is one.\n" + named, "The mark [TOOL_CALLS] is one.", {add});
  expect_read(CallForm::kNamed, "add is a word {}", "add is a word {}", {});
  expect_read(CallForm::kList, "So:\n[TOOL_CALLS] [" + kAddJson + "] [1]", "So: [1]", kAdd);
  expect_read(CallForm::kObject, kAddJson + " and {", " and {", kAdd);
  expect_read(CallForm::kObject, "So <|python_tag|>" + kAddJson + "; 5", "So; 5", kAdd);
}

TEST(CallReader, ReadsTheCallBehindAMention) {
  const std::string tagged = "<tool_call>\n" + kAddJson + "\n</tool_call>";
  const std::string function = "<tool_call>\n<function=now>\n</function>\n</tool_call>";
  const std::string mention = "I would use <tool_call> here.", broken = "<tool_call>{\"name\": \"add</tool_call>";
  const Calls now = {{"now", "{}"}};
  expect_read(CallForm::kTagged, mention + "\n\n" + tagged, mention, kAdd);
  expect_read(CallForm::kFunction, mention + "\n\n" + function, mention, now);
  expect_read(CallForm::kKeys, mention + "\n\n<tool_call>now</tool_call>", mention, now);
  expect_read(CallForm::kTagged, broken + "\n" + tagged, broken, kAdd);
  expect_read(CallForm::kTagged, tagged + "<tool_call>{\"name\"", "<tool_call>{\"name\"", kAdd);
}

TEST(CallReader, MarksInATextOfJsonAreText) {
  const std::string arguments = R"({"a": "} \" </tool_call> <tool_call>"})";
  const std::string call = R"(<tool_call>{"name": "add", "arguments": )" + arguments + "}</tool_call>";
  expect_read(CallForm::kTagged, call + "\n" + call, "", {{"add", arguments}, {"add", arguments}});
}

TEST(CallReader, ArgumentsAreAsWritten) {
  for (const std::string arguments :
       {R"({"b": 12345678901234567890123, "x": 1.0,  "a": "\u00e9"})", R"({ "c":[1e2 , {}] })", "{}"})
    expect_read(CallForm::kObject, R"({"parameters": )" + arguments + R"(, "name": "add"})", "", {{"add", arguments}});
  expect_read(CallForm::kObject, R"({"name": "add", "parameters": {"a": "\ud83d", "a": "x"}})", "",
              {{"add", R"({"a":"x"})"}});
  const std::string optional = R"([{"name": "add", "parameters": {"properties": {"a": {"anyOf": [{"type": "integer"},
                                   {"type": "null"}]}}}}])";
  const std::string body = "<function=add><parameter=a>7</parameter><parameter=a>5</parameter></function>";
  EXPECT_THAT(calls_of(CallForm::kFunction, body, ordered_json::parse(optional)),
              testing::ElementsAre(ToolCall{"add", R"({"a":5})"}));
}

TEST(CallReader, ThoughtsHaveNoCalls) {
  const std::string tagged = "<tool_call>" + kAddJson + "</tool_call>", object = "<|python_tag|>" + kAddJson;
  const std::string thought = "\n<think>\n" + tagged + object + " <tool_call>\n</think>";
  expect_read(CallForm::kTagged, thought + "\n\n" + tagged, thought, kAdd);
  expect_read(CallForm::kObject, thought + "\n\n" + kAddJson, thought, kAdd);
  expect_read(CallForm::kTagged, "<think>" + tagged + "</thin", "<think>" + tagged + "</thin", {});
  expect_read(CallForm::kTagged, "A <think> " + tagged, "A <think>", kAdd);
  expect_read(CallForm::kTagged, "<thin", "<thin", {});
  CallReader opened(CallForm::kTagged, kTools, true);
  EXPECT_EQ(opened.read(tagged + "</think>", false).text, tagged + "</think>");
  EXPECT_EQ(opened.read(tagged, true).calls, kAdd);
}

// A call's arguments as they are meant, as others write them in another way.
ordered_json meant(const Calls& calls) {
  ordered_json out = ordered_json::array();
  for (const ToolCall& call : calls) out.push_back({call.name, ordered_json::parse(call.arguments), call.id});
  return out;
}

ordered_json names_of(const Calls& calls) {
  ordered_json names = ordered_json::array();
  for (const ToolCall& call : calls) names.push_back(call.name);
  return names;
}

// make_calls.py. A text that vLLM drops is null there; what it streams differs from the whole by lines between
// messages.
TEST(CallReader, ReadsWhatOthersRead) {
  const std::map<std::string, CallForm> forms = {
      {"harmony", CallForm::kHarmony}, {"functools", CallForm::kFunctools}, {"named", CallForm::kNamed}};
  const auto cases = ordered_json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/calls.json"));
  EXPECT_GT(cases.size(), 20U);
  const ordered_json tools = {{{"name", "add"}}, {{"name", "now"}}, {{"name", "get_weather"}}};
  for (const ordered_json& one : cases) {
    const auto answer = one.at("answer").get<std::string>();
    for (const size_t bytes : {size_t{1}, size_t{5}, answer.size() + 1}) {
      SCOPED_TRACE(one.dump() + " by " + std::to_string(bytes));
      const CallReader::Read read = read_in_pieces(forms.at(one.at("form")), answer, bytes, tools);
      EXPECT_EQ(meant(read.calls), one.at("calls"));
      EXPECT_EQ(names_of(read.calls), one.contains("streamed") ? one["streamed"]["calls"] : names_of(read.calls));
      EXPECT_EQ(read.thoughts, one.at("thoughts"));
      const auto content = one.at("content").is_null() ? read.text : one.at("content").get<std::string>();
      EXPECT_EQ(base::stripped(read.text), base::stripped(content));
    }
  }
}

TEST(CallReader, OfHarmonyWhatIsNoCallIsText) {
  const std::string other = "<|channel|>commentary to=functions.other json<|message|>{}<|call|>";
  const std::string broken = " to=functions.add<|channel|>commentary json<|message|>{\"a\": ";
  for (const std::string& answer :
       {other, broken, std::string(" to=functions.now<|channel|>commentary"), std::string("a < b <|sta"),
        std::string("<|start|>user<|message|>and?<|end|>"), std::string("<|channel|>new<|message|>x<|end|>")})
    expect_read(CallForm::kHarmony, answer, answer, {});
  const std::string call = "<|channel|>commentary to=functions.now json<|message|>{}<|call|>";
  expect_read(CallForm::kHarmony, "<|message|>One.<|end|><|start|>assistant" + call + "<|start|>assistant" + other,
              "One.\n<|start|>assistant" + other, {{"now", "{}"}});
  expect_read(CallForm::kHarmony, call + " and", " and", {{"now", "{}"}});
}

TEST(CallReader, ReadsCallsOfPhi) {
  const std::string list = "[" + kAddJson + "]", marked = "<|tool_call|>" + list + "<|/tool_call|>";
  expect_read(CallForm::kPhi, "So: " + marked, "So:", kAdd);
  expect_read(CallForm::kPhi, "<|tool_call|>[{\"name\": \"other\"}]<|/tool_call|>",
              "<|tool_call|>[{\"name\": \"other\"}]<|/tool_call|>", {});
  expect_read(CallForm::kFunctools, "functools" + list, "", kAdd);
  expect_read(CallForm::kFunctools, "So: functools" + list + " functools", "So: functools", kAdd);
  expect_read(CallForm::kFunctools, list, "", kAdd);
}

TEST(CallReader, ReadsCallsOfGemma4) {
  const std::string add = "<|tool_call>call:add{a:2,b:<|\"|>3<|\"|>}<tool_call|>";
  expect_read(CallForm::kGemma, "So: " + add + add,
              "So:", {{"add", R"({"a":2,"b":"3"})"}, {"add", R"({"a":2,"b":"3"})"}});
  const auto arguments = [](const std::string& body) {
    const std::vector<ToolCall> calls = calls_of(CallForm::kGemma, "call:now{" + body + "}", {});
    return calls.empty() ? "none" : calls[0].arguments;
  };
  EXPECT_EQ(arguments(""), "{}");
  EXPECT_EQ(arguments(R"(x:{<|"|>k,:<|"|>:[true, null ,-1.50e3],y:{}},z:[],x:<|"|>}" ]<|"|>)"),
            R"({"x":"}\" ]","z":[]})");
  EXPECT_EQ(arguments("city:Rome"), R"({"city":"Rome"})");
  for (const char* broken : {"a", "a:", "a:1,", "a:[1", "a:1 b:2", R"(a:<|"|>x)"})
    EXPECT_EQ(arguments(broken), "none") << broken;
  std::string deep = "a:";
  for (int i = 0; i < 300; ++i) deep += '[';
  EXPECT_EQ(arguments(deep + std::string(300, ']')), "none");
  for (const std::string text : {"<|tool_call>call:other{}<tool_call|>", "<|tool_call>add{}<tool_call|>",
                                 "<|tool_call>call:add{a:2}", "<|tool_call>call:add{a:2}}<tool_call|>"})
    expect_read(CallForm::kGemma, text, text, {});
}

TEST(CallReader, ReadsCallsOfLfm2) {
  const std::string call = "<|tool_call_start|>[add(a=2, b='3'), now()]<|tool_call_end|>";
  expect_read(CallForm::kPython, "So: " + call + "Well?", "So:Well?", {{"add", R"({"a":2,"b":"3"})"}, {"now", "{}"}});
  const auto arguments = [](const std::string& body) {
    const std::vector<ToolCall> calls = calls_of(CallForm::kPython, "[now(" + body + ")]", {});
    return calls.empty() ? "none" : calls[0].arguments;
  };
  EXPECT_EQ(arguments(R"(a=True, b=[None, false, 1.50], c={"x": 'y', 'z': {}}, a=False)"),
            R"({"a":false,"b":[null,false,1.50],"c":{"x":"y","z":{}}})");
  EXPECT_EQ(arguments(R"(a='it\'s', b="a)]\n\x41\u00e9\d\ud83d")"), R"({"a":"it's","b":"a)]\nAé\\d�"})");
  for (const char* broken : {"1", "a", "a=", "a=x", "a='x", "a=1,,b=2", "a=1 b=2", "a=[1", "a=f(1)", "a==1"})
    EXPECT_EQ(arguments(broken), "none") << broken;
  EXPECT_TRUE(calls_of(CallForm::kPython, "[now()", {}).empty());
  EXPECT_TRUE(calls_of(CallForm::kPython, "[now()] x", {}).empty());
  EXPECT_TRUE(calls_of(CallForm::kPython, "now()", {}).empty());
  const std::string other = "<|tool_call_start|>[other()]<|tool_call_end|>";
  expect_read(CallForm::kPython, other, other, {});
}

// Special tokens of a call have no text elsewhere.
TEST(CallReader, SeesTheTokensOfItsForm) {
  const CharacterTokenizer tokenizer({.specials = {"$", "[TOOL_CALLS]", "[ARGS]"}, .tokens = {"a"}, .eos = "$"});
  EXPECT_THAT(call_token_ids(CallForm::kNamed, tokenizer),
              testing::ElementsAre(*tokenizer.id_of("[TOOL_CALLS]"), *tokenizer.id_of("[ARGS]")));
  EXPECT_THAT(call_token_ids(CallForm::kList, tokenizer), testing::ElementsAre(*tokenizer.id_of("[TOOL_CALLS]")));
  EXPECT_THAT(call_token_ids(CallForm::kTagged, tokenizer), testing::IsEmpty());
}

CallForm form_of(const std::string& turn, const std::string& told = "") {
  const CharacterTokenizer tokenizer(
      {.specials = {"$"},
       .tokens = {"a"},
       .eos = "$",
       .chat_template =
           told + "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{% set f = c.function %}" +
           turn +
           "{% endfor %}$ {% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
           "{% if add_generation_prompt %}<assistant>{% endif %}"});
  return make_chat_template(tokenizer)->call_form();
}

TEST(CallForm, IsWhatTheTemplateWrites) {
  const std::string json = R"({"name": "{{ f.name }}", "KEY": {{ f.arguments | tojson }}})";
  const auto with = [&](const std::string& key) { return std::string(json).replace(json.find("KEY"), 3, key); };
  EXPECT_EQ(form_of("<assistant><tool_call>\n" + with("arguments") + "\n</tool_call>"), CallForm::kTagged);
  EXPECT_EQ(form_of("<assistant>" + with("parameters")), CallForm::kObject);
  EXPECT_EQ(form_of("[TOOL_CALLS] [" + with("arguments") + "]"), CallForm::kList);
  EXPECT_EQ(form_of("<assistant><|python_tag|>" + with("parameters")), CallForm::kObject);
  EXPECT_EQ(form_of("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}"), CallForm::kNamed);
  EXPECT_EQ(
      form_of("<assistant><tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k "
              "}}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>"),
      CallForm::kFunction);
  EXPECT_EQ(form_of("<assistant>\n<tool_call>{{ f.name }}\n{% for k, v in f.arguments.items() %}<arg_key>{{ k "
                    "}}</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}</tool_call>"),
            CallForm::kKeys);
  EXPECT_EQ(form_of("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{{ f.name }}\n```json\n{{ "
                    "f.arguments | tojson }}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            CallForm::kDeepSeek);
  EXPECT_EQ(form_of("[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]{{ f.arguments | tojson }}"), CallForm::kNamed);
  EXPECT_EQ(form_of("<assistant><|tool_call|>[" + with("arguments") + "]<|/tool_call|>"), CallForm::kPhi);
  EXPECT_EQ(form_of("<assistant>functools[" + with("arguments") + "]"), CallForm::kFunctools);
  EXPECT_EQ(form_of("<|start|>assistant to=functions.{{ f.name }}<|channel|>commentary json<|message|>"
                    "{{ f.arguments | tojson }}<|call|>"),
            CallForm::kHarmony);
  EXPECT_EQ(form_of("<|tool_call>call:{{ f.name }}{{ '{' }}{% for k, v in f.arguments.items() %}{{ k }}:<|\"|>{{ v }}"
                    "<|\"|>{% endfor %}}<tool_call|>"),
            CallForm::kGemma);
  EXPECT_EQ(
      form_of("<|tool_call_start|>[{{ f.name }}({% for k, v in f.arguments.items() %}{{ k }}='{{ v }}'{% endfor %}"
              ")]<|tool_call_end|>"),
      CallForm::kPython);
  EXPECT_EQ(form_of("<assistant>call " + with("arguments")), CallForm::kUnknown);
  EXPECT_EQ(form_of("{{ f.name }}({{ f.arguments | tojson }})"), CallForm::kUnknown);
  // vLLM's of Phi-4-mini joins arguments as a text, writes calls as JSON alone and tells the model another mark.
  const std::string joined = "<assistant>{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments }}}";
  EXPECT_EQ(form_of(joined), CallForm::kObject);
  EXPECT_EQ(form_of(joined, "{% if tools %}say functools[{\"name\": …}, …]{% endif %}"), CallForm::kFunctools);
  EXPECT_EQ(form_of("<assistant>{{ raise_exception('no') }}"), CallForm::kUnknown);
}

}  // namespace
}  // namespace collimate::text
