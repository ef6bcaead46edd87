#include "collimate/text/tool_calls.h"

#include <gmock/gmock.h>

#include "collimate/text/character_tokenizer.h"
#include "collimate/text/chat_template.h"

namespace collimate::text {
namespace {

using Calls = std::vector<ToolCall>;

// A text given in pieces of so many bytes.
CallReader::Read read_in_pieces(CallForm form, const std::string& text, size_t bytes) {
  CallReader reader(form, {"add", "now"});
  CallReader::Read all;
  for (size_t at = 0; at <= text.size(); at += bytes) {
    const CallReader::Read read = reader.read(text.substr(at, bytes), at + bytes > text.size());
    all.text += read.text;
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

const Calls kAdd = {{"add", R"({"b":1,"a":"}"})"}};
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

CallForm form_of(const std::string& turn) {
  const CharacterTokenizer tokenizer(
      {.specials = {"$"},
       .tokens = {"a"},
       .eos = "$",
       .chat_template =
           "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{% set f = c.function %}" + turn +
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
  EXPECT_EQ(form_of("<assistant>call " + with("arguments")), CallForm::kUnknown);
  EXPECT_EQ(form_of("{{ f.name }}({{ f.arguments | tojson }})"), CallForm::kUnknown);
  EXPECT_EQ(form_of("<assistant>{{ raise_exception('no') }}"), CallForm::kUnknown);
}

}  // namespace
}  // namespace collimate::text
