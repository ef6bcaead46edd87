#pragma once

#include <optional>
#include <string>

namespace collimate::text {

enum class TemplateForm {
  kChatMl,           // <|im_start|>ROLE\nCONTENT<|im_end|>\n (OpenHermes, SmolLM, Qwen1.5, Qwen2)
  kChatMlWithTools,  // the same for system, user and assistant; tools have a form of their own (Qwen2.5)
  kContents,         // contents alone
  kSeparator,        // contents, and sep_token before the answer (verl's arithmetic task)
  kUserBot,          // "User: CONTENT\n" and "Bot: CONTENT" + eos + "\n"
};

struct RecognisedTemplate {
  TemplateForm form;
  std::string default_system;  // put in front where the first message is not a system message; empty for none
};

// The form that a Jinja text has as a whole: its statements and its literals must be those of a known template (see
// jinja_outline), but for the default system message. nullopt for any other.
std::optional<RecognisedTemplate> recognise_template(const std::string& jinja);

// A Jinja text of the form, without a default system message.
std::string jinja_of(TemplateForm form);

}  // namespace collimate::text
