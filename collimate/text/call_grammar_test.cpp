#include "collimate/text/call_grammar.h"

#include <gmock/gmock.h>

#include "collimate/text/character_tokenizer.h"
#include "collimate/text/constraint/constraint.h"
#include "collimate/text/tool_calls.h"
#include "tests/support/base/error_of.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

// Tokens 1 … 128 are the characters of ASCII, token 0 ends a text. `special`: a mark that is a special token.
class AsciiTokenizer : public CharacterTokenizer {
 public:
  explicit AsciiTokenizer(std::string special = "", bool thinks = false)
      : CharacterTokenizer({.specials = {"$"}, .tokens = {"a"}, .bos = "$", .eos = "$", .pad = "$", .unk = "$"}),
        special_(std::move(special)),
        thinks_(thinks) {}
  std::string token_bytes(int32_t id, TokenPlace = {}) const override {
    return id == 0 || id > 128 ? "" : std::string(1, static_cast<char>(id - 1));
  }
  std::optional<int32_t> id_of(std::string_view token) const override {
    if (token == special_) return 129;
    return thinks_ && token == "<think>" ? std::optional<int32_t>(128) : std::nullopt;
  }
  bool is_special(int32_t id) const override { return id == 0 || id == 129; }
  int32_t vocab_size() const override { return 130; }

 private:
  std::string special_;
  bool thinks_;
};

const ordered_json kAddTool = ordered_json::parse(R"({"type": "function", "function": {"name": "add", "parameters": {
    "$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"enum": ["x", "\"y"]}},
    "required": ["a"], "additionalProperties": false}}})");
const ordered_json kNow = ordered_json::parse(R"({"type": "function", "function": {"name": "now"}})");

struct Asked {
  explicit Asked(CallForm form, bool several = false, AsciiTokenizer of = AsciiTokenizer()) : tokenizer(std::move(of)) {
    rule.form = form;
    rule.tools = ordered_json::array({kAddTool, kNow});
    rule.several = several;
  }
  CallRule rule;
  AsciiTokenizer tokenizer;

  // Whether a text is such an answer.
  bool takes(const std::string& text) const {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(c + 1);
    Constrainer constrainer(tokenizer, tokenizer.vocab_size(), std::vector<int32_t>{0});
    const auto constraint =
        constrainer.make({TextRule::Kind::kGrammar, call_grammar(rule, tokenizer, "tools")}, "tool_choice");
    const std::span<const uint32_t> allowed = constraint->allowed_after(ids);
    return !allowed.empty() && (allowed[0] & 1U) != 0;
  }
};

std::string tagged(const std::string& name, const std::string& arguments, const std::string& blank = "\n") {
  return "<tool_call>" + blank + R"({"name": ")" + name + R"(", "arguments": )" + arguments + "}" + blank +
         "</tool_call>";
}

TEST(CallGrammar, TaggedCallsAreOfTheToolsAndTheirParameters) {
  const Asked asked(CallForm::kTagged);
  for (const char* arguments : {R"({"a": 5})", R"({"a":-5,"b":"x"})", R"({ "a": 5, "b": "\"y" })"})
    for (const char* blank : {"", "\n"}) EXPECT_TRUE(asked.takes(tagged("add", arguments, blank))) << arguments;
  for (const char* arguments : {"{}", R"({"a": "5"})", R"({"a": 5, "b": "z"})", R"({"a": 5, "c": 1})", "5"})
    EXPECT_FALSE(asked.takes(tagged("add", arguments))) << arguments;
  EXPECT_TRUE(asked.takes(tagged("now", R"({"anything": [1, {}]})")));
  EXPECT_FALSE(asked.takes(tagged("then", "{}")));
  EXPECT_FALSE(asked.takes("Now. " + tagged("now", "{}")));
  EXPECT_FALSE(asked.takes(tagged("now", "{}") + tagged("now", "{}")));
  EXPECT_FALSE(asked.takes(""));
}

TEST(CallGrammar, SeveralCallsAreAllowedWhereTheyAreAskedFor) {
  const Asked asked(CallForm::kTagged, /*several=*/true);
  EXPECT_TRUE(asked.takes(tagged("now", "{}")));
  EXPECT_TRUE(asked.takes(tagged("now", "{}") + "\n" + tagged("add", R"({"a": 1})") + tagged("now", "{}")));
}

TEST(CallGrammar, ThoughtsComeFirstWhereThereAreSome) {
  const std::string call = tagged("now", "{}"), thoughts = "So </thin\nk></think>\n\n";
  Asked opened(CallForm::kTagged);
  opened.rule.thinking = true;
  EXPECT_TRUE(opened.takes(thoughts + call));
  EXPECT_FALSE(opened.takes(call));
  EXPECT_FALSE(opened.takes(thoughts));
  const Asked thinker(CallForm::kTagged, false, AsciiTokenizer("", /*thinks=*/true));
  EXPECT_TRUE(thinker.takes("<think>" + thoughts + call));
  EXPECT_TRUE(thinker.takes(call));
  EXPECT_FALSE(Asked(CallForm::kTagged).takes("<think>" + thoughts + call));
}

TEST(CallGrammar, OtherFormsAreJsonToo) {
  const Asked object(CallForm::kObject, /*several=*/true);
  EXPECT_TRUE(object.takes(R"({"name": "add", "parameters": {"a": 1}})"));
  EXPECT_FALSE(object.takes(R"({"name": "now", "parameters": {}}{"name": "now", "parameters": {}})"));
  const Asked listed(CallForm::kFunctools, /*several=*/true);
  EXPECT_TRUE(listed.takes(R"(functools[{"name": "add", "arguments": {"a": 1}}, {"name": "now", "arguments": {}}])"));
  EXPECT_FALSE(listed.takes(R"(functools[])"));
}

// The reader reads what is asked for.
TEST(CallGrammar, IsOfWhatTheReaderReads) {
  for (const auto& [form, text] : {std::pair(CallForm::kTagged, tagged("add", R"({"a": 1})")),
                                   {CallForm::kObject, std::string(R"({"name": "add", "parameters": {"a": 1}})")},
                                   {CallForm::kFunctools, R"(functools[{"name": "add", "arguments": {"a": 1}}])"}}) {
    EXPECT_TRUE(Asked(form).takes(text));
    CallReader reader(form, ordered_json::array({kAddTool}));
    const CallReader::Read read = reader.read(text, /*last=*/true);
    EXPECT_EQ(read.calls, (std::vector<ToolCall>{{"add", R"({"a": 1})"}})) << text;
    EXPECT_EQ(read.text, "");
  }
}

TEST(CallGrammar, CannotAskForOtherFormsOrSpecialTokens) {
  EXPECT_TRUE(can_ask_for_calls(CallForm::kTagged, AsciiTokenizer()));
  EXPECT_FALSE(can_ask_for_calls(CallForm::kTagged, AsciiTokenizer("<tool_call>")));
  EXPECT_FALSE(can_ask_for_calls(CallForm::kDeepSeek, AsciiTokenizer()));
  EXPECT_TRUE(can_ask_for_calls(CallForm::kObject, AsciiTokenizer("<|python_tag|>"))) << "a call has no such mark";
  Asked wrong(CallForm::kTagged);
  wrong.rule.tools[1]["function"]["parameters"] = 5;
  EXPECT_EQ(base::message_of([&] { call_grammar(wrong.rule, AsciiTokenizer(), "tools"); }),
            "[tools] expected tools whose parameters are a JSON schema, got 5");
}

}  // namespace
}  // namespace collimate::text
