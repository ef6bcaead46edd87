#include "collimate/text/chat_template.h"

#include <algorithm>
#include <map>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/text/jinja/template.h"

namespace collimate::text {
namespace {

using base::expectation;
using base::InputError;

// The templates that a configuration chooses by name.
struct Choice {
  const char* description;
  const char* jinja;
};
const std::map<std::string, Choice>& choices() {
  static const std::map<std::string, Choice> kChoices = {
      {"chatml",
       {"ChatML",
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' "
        "+ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"}},
      {"plain", {"plain contents", "{% for message in messages %}{{ message['content'] }}{% endfor %}"}},
      {"user-bot",
       {"User: / Bot: turns",
        "{% for message in messages %}{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\\n' }}"
        "{% elif message['role'] == 'assistant' %}{{ 'Bot: ' + message['content'] + eos_token + '\\n' }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ 'Bot:' }}{% endif %}"}}};
  return kChoices;
}

constexpr const char* kRemedy = "models.<role>.chat_template (--chat-template) chatml, plain or user-bot";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// A template that leaves out what a user or the system says has no place for it: of an assistant's turns some leave out
// the thinking, and results of tools may be written as JSON.
void check_contents(std::span<const Message> messages, const std::string& text) {
  for (const Message& message : messages) {
    if (message.role == "assistant" || message.role == "tool") continue;
    if (text.find(trimmed(message.content)) == std::string::npos)
      throw InputError(expectation("chat template", "one that writes what each message says",
                                   fmt::format("one that leaves out a message of '{}'", message.role),
                                   "data without that role"));
  }
}

class JinjaTemplate : public ChatTemplate {
 public:
  // `variables`: the special tokens.
  JinjaTemplate(const std::string& jinja, nlohmann::ordered_json variables, std::string description, bool marks_turns)
      : template_(jinja),
        variables_(std::move(variables)),
        description_(std::move(description)),
        marks_turns_(marks_turns) {}

  std::string render(std::span<const Message> messages, bool add_generation_prompt) const override {
    nlohmann::ordered_json variables = variables_;
    variables["messages"] = nlohmann::ordered_json::array();
    for (const Message& message : messages)
      variables["messages"].push_back({{"role", message.role}, {"content", message.content}});
    variables["add_generation_prompt"] = add_generation_prompt;
    std::string text = template_.render(variables);
    check_contents(messages, text);
    return text;
  }
  bool marks_turns() const override { return marks_turns_; }
  std::string description() const override { return description_; }

 private:
  jinja::Template template_;
  nlohmann::ordered_json variables_;
  std::string description_;
  bool marks_turns_;
};

// An Unreadable stands in the place of a template that cannot be read: prompts that are text do without one.
class Unreadable : public ChatTemplate {
 public:
  explicit Unreadable(std::string why) : why_(std::move(why)) {}

  std::string render(std::span<const Message>, bool) const override {
    throw InputError(fmt::format("{}; try {}", why_, kRemedy));
  }
  std::string description() const override { return fmt::format("none: the model's cannot be read, set {}", kRemedy); }

 private:
  std::string why_;
};

// Returns the variables that Hugging Face's tokenizers give to their templates.
nlohmann::ordered_json special_tokens(const Tokenizer& tokenizer) {
  const TokenizerInfo& info = tokenizer.info();
  nlohmann::ordered_json variables = {{"tools", nullptr}, {"documents", nullptr}};
  for (const auto& [name, id] :
       {std::pair{"bos_token", info.bos}, {"eos_token", info.eos}, {"pad_token", info.pad}, {"unk_token", info.unk}})
    if (id) variables[name] = tokenizer.token_bytes(*id, {.first = true});
  if (!info.separator.empty()) variables["sep_token"] = info.separator;
  return variables;
}

std::unique_ptr<ChatTemplate> own_template(const Tokenizer& tokenizer, const nlohmann::ordered_json& variables) {
  const std::string& jinja = tokenizer.info().chat_template;
  if (jinja.empty())
    return std::make_unique<JinjaTemplate>(choices().at("plain").jinja, variables,
                                           "plain contents, because the model has no chat template (a base model)",
                                           /*marks_turns=*/false);
  try {
    return std::make_unique<JinjaTemplate>(jinja, variables, "the model's own", /*marks_turns=*/true);
  } catch (const InputError& error) {
    return std::make_unique<Unreadable>(error.what());
  }
}

}  // namespace

std::unique_ptr<ChatTemplate> make_chat_template(const Tokenizer& tokenizer, const std::string& choice) {
  const nlohmann::ordered_json variables = special_tokens(tokenizer);
  if (choice == "auto") return own_template(tokenizer, variables);
  const auto found = choices().find(choice);
  if (found == choices().end())
    throw InputError(expectation("chat_template", "auto, chatml, plain or user-bot", "'" + choice + "'"));
  return std::make_unique<JinjaTemplate>(found->second.jinja, variables,
                                         std::string(found->second.description) + ", as configured",
                                         /*marks_turns=*/true);
}

void save_chat_template(const std::string& choice, const std::string& directory) {
  if (const auto found = choices().find(choice); found != choices().end())
    host::write_file_atomically(directory + "/chat_template.jinja", found->second.jinja);
}

}  // namespace collimate::text
