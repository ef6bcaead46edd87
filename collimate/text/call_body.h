#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON of an object, as it was written but for what json_text mends
  std::string id = {};    // where the model gave one
  bool operator==(const ToolCall&) const = default;
};

// How templates write an assistant's calls.
enum class CallForm {
  kUnknown,
  kTagged,    // <tool_call>{"name", "arguments"}</tool_call> after a text or none, as of Hermes and Qwen
  kFunction,  // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>: Qwen3-Coder,
              // Nemotron 3
  kKeys,      // <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>, as of GLM 4.5
  kDeepSeek,  // <｜tool▁calls▁begin｜> … <｜tool▁calls▁end｜>, a name and JSON between marks for each call: V3, V3.1
  kPhi,        // <|tool_call|>[{"name", "arguments"}]<|/tool_call|>: Phi-4-mini
  kGemma,      // <|tool_call>call:NAME{KEY:<|"|>VALUE<|"|>}<tool_call|>: Gemma 4
  kPython,     // <|tool_call_start|>[NAME(KEY='VALUE')]<|tool_call_end|>: LFM2
  kHarmony,    // <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{…}<|call|>: gpt-oss
  kObject,     // {"name", "parameters"} alone, as of Llama 3; <|python_tag|> may stand ahead
  kList,       // [TOOL_CALLS] [{"name", "arguments"}] alone, as of Mistral; its mark may be a token that is not shown
  kFunctools,  // functools[{"name", "arguments"}] alone, as Phi-4-mini is told to say it
  kNamed  // [TOOL_CALLS]NAME[ARGS]{…} alone, as of later ones of Mistral, some with [CALL_ID]ID ahead of the arguments;
          // the marks likewise
};

// Texts around the calls of a form that may stand behind other text; empty for one whose calls stand alone.
struct CallMarks {
  std::string_view open, close;
};
CallMarks call_marks(CallForm form);
// A mark that may stand ahead of calls that have none around them.
std::string_view call_mark_ahead(CallForm form);
// Marks of kNamed, behind a name.
inline constexpr std::string_view kArgumentsMark = "[ARGS]", kIdMark = "[CALL_ID]";
// All marks of a form by which calls are read, as tokens may be special that have no text elsewhere.
std::vector<std::string_view> call_tokens(CallForm form);

// The function that a tool's definition names: under "function", as OpenAI has it, or the definition itself.
const nlohmann::ordered_json& function_of(const nlohmann::ordered_json& tool);
std::vector<std::string> tool_names(const nlohmann::ordered_json& tools);
// Whether there are calls, and none of them of another function than those of `names`.
bool call_only(const std::vector<ToolCall>& calls, const std::vector<std::string>& names);

// A part of an answer as it was read: its content, its thoughts where the form has a place of their own for them, its
// calls.
struct AnswerPart {
  std::string text, thoughts;
  std::vector<ToolCall> calls;
};

// The length of the JSON value that the text begins with; 0 where it does not end.
size_t json_length(std::string_view text);

// The calls that the text between the marks of a form says, or that of one call of a form without them; none where it
// says anything else. `tools`: the definitions, whose parameters say how values of kFunction and kKeys are read
// (argument_value). The names are not compared.
std::vector<ToolCall> calls_of(CallForm form, std::string_view body, const nlohmann::ordered_json& tools);

}  // namespace collimate::text
