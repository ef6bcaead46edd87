#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON of an object, as the model wrote it but for what json_text mends
  std::string id = {};    // "" where the model gave none
  bool operator==(const ToolCall&) const = default;
};

// The form in which a template writes an assistant's tool calls.
enum class CallForm {
  kUnknown,
  kTagged,     // <tool_call>{"name", "arguments"}</tool_call> after a text or none, as of Hermes and Qwen
  kFunction,   // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>: Qwen3-Coder,
               // Nemotron 3
  kKeys,       // <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>, as of GLM 4.5
  kDeepSeek,   // <｜tool▁calls▁begin｜> … <｜tool▁calls▁end｜>, in it a name and JSON between
               // marks for each call: V3, V3.1
  kPhi,        // <|tool_call|>[{"name", "arguments"}]<|/tool_call|>: Phi-4-mini
  kGemma,      // <|tool_call>call:NAME{KEY:<|"|>VALUE<|"|>}<tool_call|>: Gemma 4
  kPython,     // <|tool_call_start|>[NAME(KEY='VALUE')]<|tool_call_end|>: LFM2
  kHarmony,    // <|start|>assistant to=functions.NAME<|channel|>commentary json<|message|>{…}<|call|>: gpt-oss
  kObject,     // {"name", "parameters"} alone, as of Llama 3; <|python_tag|> may stand ahead
  kList,       // [TOOL_CALLS] [{"name", "arguments"}] alone, as of Mistral; its mark may be a token that is not shown
  kFunctools,  // functools[{"name", "arguments"}] alone, as Phi-4-mini is told to say it
  kNamed       // [TOOL_CALLS]NAME[ARGS]{…} alone, as of later models of Mistral, some with [CALL_ID]ID ahead of the
               // arguments; its marks too may be tokens that are not shown
};

// The texts that stand around the calls of a form whose calls may follow other text. Both are empty for a form whose
// calls stand alone.
struct CallMarks {
  std::string_view open, close;
};
CallMarks call_marks(CallForm form);
// Returns the mark that may stand ahead of the calls of a form that has no marks around them.
std::string_view call_mark_ahead(CallForm form);
// These marks of kNamed stand behind a name.
inline constexpr std::string_view kArgumentsMark = "[ARGS]", kIdMark = "[CALL_ID]";
// Returns all marks by which the calls of a form are read. Some of them may be special tokens, which decoding leaves
// out elsewhere.
std::vector<std::string_view> call_tokens(CallForm form);

// Returns the function that a tool's definition names: its member "function", as in OpenAI's form, or the definition
// itself.
const nlohmann::ordered_json& function_of(const nlohmann::ordered_json& tool);
std::vector<std::string> tool_names(const nlohmann::ordered_json& tools);
// Returns whether there are calls and every one is of a function among `names`.
bool call_only(const std::vector<ToolCall>& calls, const std::vector<std::string>& names);

// A part of an answer after reading: its content, its calls, and its thoughts where the form keeps these apart.
struct AnswerPart {
  std::string text, thoughts;
  std::vector<ToolCall> calls;
};

// Returns the length in bytes of the JSON value that the text begins with; 0 where the value does not end.
size_t json_length(std::string_view text);

// Returns the calls that stand in the text between a form's marks, or in the text of one call for a form without marks;
// none where the text says anything else. `tools` holds the definitions, whose parameters say how values of kFunction
// and kKeys are read (argument_value). Names are not compared with those of `tools`.
std::vector<ToolCall> calls_of(CallForm form, std::string_view body, const nlohmann::ordered_json& tools);

}  // namespace collimate::text
