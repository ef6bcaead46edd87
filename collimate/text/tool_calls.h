#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON of an object, as it was written
  bool operator==(const ToolCall&) const = default;
};

// How templates write an assistant's calls.
enum class CallForm {
  kUnknown,
  kTagged,  // <tool_call>{"name", "arguments"}</tool_call> after a text or none, as of Hermes and Qwen
  kObject,  // {"name", "parameters"} alone, as of Llama 3
  kList     // [TOOL_CALLS] [{"name", "arguments"}] alone, as of Mistral; its mark may be a token that is not shown
};

// Found where the text has {"name": name, …}: by what stands around it. `opening`: the text before the turn.
CallForm call_form_of(std::string_view text, std::string_view opening, std::string_view name);

// Reads calls out of the text of an answer as it comes. What may be the beginning of a call is held back; what turns
// out to be none is text, unchanged. Beside a call, white space before and after it is left out.
class CallReader {
 public:
  struct Read {
    std::string text;
    std::vector<ToolCall> calls;
  };

  // `names`: the tools that may be called; something else is no call.
  CallReader(CallForm form, std::vector<std::string> names) : form_(form), names_(std::move(names)) {}

  // `last`: nothing follows.
  Read read(std::string_view text, bool last);
  bool any() const { return any_; }

 private:
  void read_tagged(Read& read, bool last);
  void read_alone(Read& read, bool last);
  bool take_call(std::string_view json, Read& read);
  bool known(const std::vector<ToolCall>& calls) const;

  CallForm form_;
  std::vector<std::string> names_;
  std::string held_;
  bool any_ = false;
  bool text_begun_ = false;
};

}  // namespace collimate::text
