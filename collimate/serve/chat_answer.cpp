#include "collimate/serve/chat_answer.h"

#include <utility>
#include <vector>

namespace collimate::serve {

ChatAnswer::ChatAnswer(const text::Renderer& renderer, const generate::SamplingParams& params,
                       std::span<const int32_t> prompt, const nlohmann::ordered_json& tools)
    : parts_(renderer.chat().call_form() == text::CallForm::kHarmony),
      text_(renderer.tokenizer(), params, prompt,
            parts_ ? text::call_token_ids(text::CallForm::kHarmony, renderer.tokenizer()) : std::vector<int32_t>()),
      reader_(text::CallForm::kHarmony, tools) {}

std::string ChatAnswer::read(const generate::Emission& emission) {
  const Delta delta =
      text_.read({.tokens = emission.tokens, .log_probs = emission.log_probs, .finish = emission.finish});
  if (!parts_) {
    said_.text += delta.text;
    return delta.text;
  }
  const text::AnswerPart part = reader_.read(delta.text, text_.finished());
  said_.thoughts += part.thoughts;
  said_.text += part.text;
  said_.calls.insert(said_.calls.end(), part.calls.begin(), part.calls.end());
  std::string shown;
  show("thinking", part.thoughts, shown);
  show("answer", part.text, shown);
  for (const text::ToolCall& call : part.calls) {
    part_.clear();  // so that each call begins a line
    show("call", call.name + " " + call.arguments, shown);
  }
  return shown;
}

void ChatAnswer::show(const char* part, const std::string& text, std::string& shown) {
  if (text.empty()) return;
  if (const std::string before = std::exchange(part_, part); before != part)
    shown += (begun_ ? "\n" : "") + part_ + ": ";
  begun_ = true;
  shown += text;
}

// A message with calls keeps its thoughts only if it has no text, because gpt-oss' template refuses both beside calls.
text::Message ChatAnswer::message() const {
  text::Message message{"assistant", said_.text};
  if (!said_.thoughts.empty() && (said_.calls.empty() || said_.text.empty()))
    message.more["reasoning_content"] = said_.thoughts;
  for (const text::ToolCall& call : said_.calls)
    message.more["tool_calls"].push_back(
        {{"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  return message;
}

}  // namespace collimate::serve
