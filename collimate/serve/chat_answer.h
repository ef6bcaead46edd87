#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collimate/generate/service.h"
#include "collimate/serve/completion.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/tool_calls.h"

namespace collimate::serve {

// One answer of a conversation as it comes: what is shown of it, and the message that it becomes. An answer in harmony
// has its parts apart, each on a line that names it: "thinking: …", "answer: …", "call: add {"a": 2}".
class ChatAnswer {
 public:
  // Keeps a reference to the renderer's tokenizer. `tools`: the definitions of those that may be called, or null.
  ChatAnswer(const text::Renderer& renderer, const generate::SamplingParams& params, std::span<const int32_t> prompt,
             const nlohmann::ordered_json& tools);

  // Gives what is to be shown now. Nothing once finished.
  std::string read(const generate::Emission& emission);
  bool finished() const { return text_.finished(); }
  // Gives what it has said so far, as the next turn's template gets it.
  text::Message message() const;

 private:
  void show(const char* part, const std::string& text, std::string& shown);

  bool parts_;  // of harmony
  ChoiceText text_;
  text::CallReader reader_;
  std::string part_;  // the one that was shown last
  bool begun_ = false;
  text::AnswerPart said_;
};

}  // namespace collimate::serve
