#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collimate/generate/service.h"
#include "collimate/serve/completion.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/tool_calls.h"

namespace collimate::serve {

// A ChatAnswer reads one answer of a conversation as it is drawn, and gives the text to show and the message that it
// becomes. Of an answer in the harmony format each part is shown on a line of its own that begins with its name:
// "thinking: …", "answer: …", "call: add {"a": 2}".
class ChatAnswer {
 public:
  // Keeps a reference to the renderer's tokenizer. `tools` are the definitions of tools that may be called, or null.
  ChatAnswer(const text::Renderer& renderer, const generate::SamplingParams& params, std::span<const int32_t> prompt,
             const nlohmann::ordered_json& tools);

  // Returns the text to show for this emission, "" once finished.
  std::string read(const generate::Emission& emission);
  bool finished() const { return text_.finished(); }
  // Returns the answer so far as a message, in the form that the next turn's chat template reads.
  text::Message message() const;

 private:
  void show(const char* part, const std::string& text, std::string& shown);

  bool parts_;  // whether the answer is in harmony, which has parts
  ChoiceText text_;
  text::CallReader reader_;
  std::string part_;  // name of the part that was shown last
  bool begun_ = false;
  text::AnswerPart said_;
};

}  // namespace collimate::serve
