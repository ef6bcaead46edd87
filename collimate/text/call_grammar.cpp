#include "collimate/text/call_grammar.h"

#include <fmt/format.h>

#include "collimate/base/error.h"
#include "collimate/text/constraint/constraint.h"
#include "collimate/text/tool_calls.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

// The texts around one call, around all calls, and between two.
struct CallTexts {
  std::string open, close, begin, end, between;
};

// Returns a text as the grammar's language writes it, whose escapes are JSON's.
std::string quoted(const std::string& text) { return ordered_json(text).dump(); }

// Returns these texts as parts of a grammar. Line ends between marks and JSON are the model's choice.
CallTexts texts_of(CallForm form) {
  const std::string line = R"("\n"? )";
  switch (form) {
    case CallForm::kTagged:
      return {R"("<tool_call>" )" + line, " " + line + R"("</tool_call>")", "", "", line};
    case CallForm::kFunctools:
      return {"", "", R"("functools[" )", R"( "]")", R"(", ")"};
    default:
      return {};
  }
}

// Returns the schema of a tool's arguments.
ordered_json arguments_of(const ordered_json& tool, const std::string& name) {
  const ordered_json& function = function_of(tool);
  const auto parameters = function.find("parameters");
  if (parameters == function.end() || parameters->is_null() || parameters->empty()) return {{"type", "object"}};
  if (!parameters->is_object())
    throw base::InputError(base::expectation(name, "tools whose parameters are a JSON schema", parameters->dump()));
  ordered_json schema = *parameters;
  if (!schema.contains("type")) schema["type"] = "object";
  return schema;
}

}  // namespace

bool can_ask_for_calls(CallForm form, const Tokenizer& tokenizer) {
  const bool json = form == CallForm::kTagged || form == CallForm::kObject || form == CallForm::kFunctools;
  // The mark that may stand ahead of an object is one that the grammar never writes.
  return json && (form == CallForm::kObject || call_token_ids(form, tokenizer).empty());
}

std::string call_grammar(const CallRule& rule, const Tokenizer& tokenizer, const std::string& name) {
  const CallTexts texts = texts_of(rule.form);
  const bool several = rule.several && rule.form != CallForm::kObject;  // kObject has one call alone
  const char* arguments = rule.form == CallForm::kObject ? "parameters" : "arguments";
  std::string any, calls;
  for (size_t i = 0; i < rule.tools.size(); ++i) {
    const std::string called = function_of(rule.tools[i]).at("name");
    const std::string opening = fmt::format(R"({{"name": {}, "{}": )", ordered_json(called).dump(), arguments);
    any += fmt::format("{}call_{}", i == 0 ? "" : " | ", i);
    calls += fmt::format("call_{0}: {1} arguments_{0} \"}}\"\narguments_{0}: %json {2}\n", i, quoted(opening),
                         with_bounded_blanks(arguments_of(rule.tools[i], name).dump(), name));
  }
  std::string start =
      fmt::format("{}call{}{}", texts.begin, several ? fmt::format(" ({} call)*", texts.between) : "", texts.end);
  std::string thoughts;
  if (rule.thinking || tokenizer.id_of("<think>")) {
    thoughts = "thoughts: inner \"\\n\"? \"\\n\"?\ninner[lazy]: /(.|\\n)*<\\/think>/\n";
    start = (rule.thinking ? "thoughts " : "(\"<think>\" thoughts)? ") + start;
  }
  return fmt::format("start: {}\ncall: {}any{}\nany: {}\n{}{}", start, texts.open, texts.close, any, calls, thoughts);
}

}  // namespace collimate::text
