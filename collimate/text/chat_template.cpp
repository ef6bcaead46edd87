#include "collimate/text/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/text/jinja/spaces.h"
#include "collimate/text/jinja/template.h"
#include "collimate/text/tool_form.h"

namespace collimate::text {
namespace {

using base::expectation;
using base::InputError;

// A template that a configuration can choose by name.
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

// Refuses a template that leaves out what a user or the system says, as it has no place for it. Other turns are not
// checked: some templates leave out an assistant's thinking, and results of tools may be written as JSON.
void check_contents(std::span<const Message> turns, const std::string& text) {
  for (const Message& message : turns) {
    if (message.role == "assistant" || message.role == "tool") continue;
    if (text.find(jinja::stripped(message.content)) == std::string::npos)
      throw InputError(expectation("chat template", "one that writes what each message says",
                                   fmt::format("one that leaves out a message of '{}'", message.role),
                                   "data without that role"));
  }
}

// Throws InputError for a variable of chat_template_kwargs that the template does not read, or that a conversation sets
// by itself. `variables` is an object or null.
void check_variables(const ChatTemplate& chat, const nlohmann::ordered_json& variables) {
  if (!variables.is_object()) return;
  for (const auto& [name, value] : variables.items()) {
    const bool ours = name == "messages" || name == "tools" || name == "add_generation_prompt";
    if (!ours && chat.reads(name)) continue;
    throw InputError(
        expectation("chat_template_kwargs", ours ? "options of the template" : "variables that the chat template reads",
                    fmt::format("{}, which {} ({})", name, ours ? "a conversation says by itself" : "it does not",
                                chat.description()),
                    "leaving it out"));
  }
}

class JinjaTemplate : public ChatTemplate {
 public:
  // `variables` are the special tokens and what the user sets.
  JinjaTemplate(jinja::Template chat, nlohmann::ordered_json variables, std::string description, bool marks_turns)
      : template_(std::move(chat)),
        variables_(std::move(variables)),
        description_(std::move(description)),
        marks_turns_(marks_turns) {
    if (template_.mentions("tool_calls")) form_ = tool_form_of(template_, variables_);
  }

  std::string render_turns(std::span<const Message> turns, const TemplateInputs& inputs,
                           bool add_generation_prompt) const override {
    return checked(turns, inputs, add_generation_prompt).text;
  }
  bool marks_answers(const TemplateInputs&) const override { return template_.marks(); }
  jinja::MarkedText render_marked(const Conversation& conversation) const override {
    return checked(conversation.turns, conversation.inputs, false);
  }
  bool marks_turns() const override { return marks_turns_; }
  bool reads(const std::string& variable) const override { return template_.reads(variable); }
  CallForm call_form() const override { return form_.calls; }
  std::string description() const override { return description_; }

 private:
  jinja::MarkedText checked(std::span<const Message> turns, const TemplateInputs& inputs,
                            bool add_generation_prompt) const {
    check_read(turns, inputs);
    jinja::MarkedText made = rendered(turns, inputs, add_generation_prompt);
    check_contents(turns, made.text);
    check_shown(turns, inputs, add_generation_prompt, made.text);
    return made;
  }

  jinja::MarkedText rendered(std::span<const Message> turns, const TemplateInputs& inputs,
                             bool add_generation_prompt) const {
    nlohmann::ordered_json variables = variables_;
    if (inputs.variables.is_object()) variables.update(inputs.variables);
    variables["messages"] = nlohmann::ordered_json::array();
    for (const Message& turn : turns) variables["messages"].push_back(message_json(turn, form_));
    variables["tools"] = inputs.tools;
    variables["add_generation_prompt"] = add_generation_prompt;
    return template_.render_marked(variables);
  }

  [[noreturn]] void refuse_unwritten(const std::string& what) const {
    throw InputError(expectation("chat template", "one that writes " + what,
                                 fmt::format("one that leaves them out ({})", description_),
                                 "a model whose template has a place for them, or data without them"));
  }

  // Refuses what no line of the template looks at.
  void check_read(std::span<const Message> turns, const TemplateInputs& inputs) const {
    check_variables(*this, inputs.variables);
    if (!inputs.tools.is_null() && !template_.reads("tools")) refuse_unwritten("tools");
    for (const Message& turn : turns) {
      if (turn.calls_tools() && !template_.mentions("tool_calls")) refuse_unwritten("calls of tools (tool_calls)");
      const auto mentioned = [&](const char* name) { return template_.mentions(name); };
      if (turn.more.is_object() && turn.more.contains("reasoning_content") &&
          std::ranges::none_of(std::initializer_list<const char*>{"reasoning_content", "reasoning", "thinking"},
                               mentioned))
        refuse_unwritten("thoughts beside a content (reasoning_content)");
    }
  }

  // Refuses what the template looks at and leaves out all the same: without it the text would be the same.
  void check_shown(std::span<const Message> turns, const TemplateInputs& inputs, bool add_generation_prompt,
                   const std::string& text) const {
    const auto same = [&](std::span<const Message> others, const TemplateInputs& other_inputs) {
      try {
        return rendered(others, other_inputs, add_generation_prompt).text == text;
      } catch (const InputError&) {
        return false;
      }
    };
    if (!inputs.tools.is_null() && same(turns, {.variables = inputs.variables})) refuse_unwritten("tools");
    Messages silent(turns.begin(), turns.end());
    for (Message& turn : silent)
      if (turn.calls_tools()) turn.more = nullptr;
    if (std::ranges::any_of(turns, &Message::calls_tools) && same(silent, inputs))
      refuse_unwritten("calls of tools (tool_calls)");
    const auto is_result = [](const Message& turn) { return turn.role == "tool"; };
    Messages asked(turns.begin(), turns.end());
    if (std::erase_if(asked, is_result) > 0 && same(asked, inputs)) refuse_unwritten("results of tools");
  }

  jinja::Template template_;
  nlohmann::ordered_json variables_;
  std::string description_;
  bool marks_turns_;
  ToolForm form_;
};

// An Unreadable stands in the place of a template that cannot be read: prompts that are text do without one.
class Unreadable : public ChatTemplate {
 public:
  explicit Unreadable(std::string why) : why_(std::move(why)) {}

  std::string render_turns(std::span<const Message>, const TemplateInputs&, bool) const override {
    throw InputError(fmt::format("{}; try {}", why_, kRemedy));
  }
  std::string description() const override { return fmt::format("none: the model's cannot be read, set {}", kRemedy); }
  bool reads(const std::string&) const override { return true; }  // it might

 private:
  std::string why_;
};

// A ToolTemplates has a model's template and the one that it has for conversations with tools.
class ToolTemplates : public ChatTemplate {
 public:
  ToolTemplates(std::unique_ptr<ChatTemplate> without, std::unique_ptr<ChatTemplate> with)
      : without_(std::move(without)), with_(std::move(with)) {}

  std::string render_turns(std::span<const Message> turns, const TemplateInputs& inputs,
                           bool add_generation_prompt) const override {
    return of(inputs).render_turns(turns, inputs, add_generation_prompt);
  }
  bool marks_answers(const TemplateInputs& inputs) const override { return of(inputs).marks_answers(inputs); }
  jinja::MarkedText render_marked(const Conversation& conversation) const override {
    return of(conversation.inputs).render_marked(conversation);
  }
  bool reads(const std::string& variable) const override { return without_->reads(variable) || with_->reads(variable); }
  CallForm call_form() const override { return with_->call_form(); }
  std::string description() const override {
    return fmt::format("{}; with tools: {}", without_->description(), with_->description());
  }

 private:
  const ChatTemplate& of(const TemplateInputs& inputs) const { return inputs.tools.is_null() ? *without_ : *with_; }

  std::unique_ptr<ChatTemplate> without_, with_;
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

// Makes a template with the variables that a user sets.
std::unique_ptr<ChatTemplate> configured(jinja::Template jinja, nlohmann::ordered_json variables,
                                         const nlohmann::ordered_json& set, const std::string& description,
                                         bool marks_turns) {
  if (set.is_object()) variables.update(set);
  return std::make_unique<JinjaTemplate>(std::move(jinja), std::move(variables), description, marks_turns);
}

// Makes a template from one of the model's files.
std::unique_ptr<ChatTemplate> template_of_file(const std::string& jinja, const nlohmann::ordered_json& variables,
                                               const nlohmann::ordered_json& set, const std::string& description) {
  std::optional<jinja::Template> readable;
  try {
    readable.emplace(jinja);
  } catch (const InputError& error) {
    return std::make_unique<Unreadable>(error.what());
  }
  return configured(std::move(*readable), variables, set, description, /*marks_turns=*/true);
}

std::unique_ptr<ChatTemplate> own_template(const Tokenizer& tokenizer, const nlohmann::ordered_json& variables,
                                           const nlohmann::ordered_json& set) {
  const TokenizerInfo& info = tokenizer.info();
  if (info.chat_template.empty())
    return configured(jinja::Template(choices().at("plain").jinja), variables, set,
                      "plain contents, because the model has no chat template (a base model)",
                      /*marks_turns=*/false);
  auto own = template_of_file(info.chat_template, variables, set, "the model's own chat template");
  if (info.tool_template.empty()) return own;
  return std::make_unique<ToolTemplates>(std::move(own),
                                         template_of_file(info.tool_template, variables, set, "the model's tool_use"));
}

}  // namespace

std::unique_ptr<ChatTemplate> make_chat_template(const Tokenizer& tokenizer, const std::string& choice,
                                                 const nlohmann::ordered_json& variables) {
  const nlohmann::ordered_json tokens = special_tokens(tokenizer);
  const auto found = choices().find(choice);
  if (choice != "auto" && found == choices().end())
    throw InputError(expectation("chat_template", "auto, chatml, plain or user-bot", "'" + choice + "'"));
  auto chat = choice == "auto" ? own_template(tokenizer, tokens, variables)
                               : configured(jinja::Template(found->second.jinja), tokens, variables,
                                            std::string(found->second.description) + ", as configured",
                                            /*marks_turns=*/true);
  check_variables(*chat, variables);
  return chat;
}

void save_chat_template(const std::string& choice, const std::string& directory) {
  const auto found = choices().find(choice);
  if (found == choices().end()) return;
  host::write_file_atomically(directory + "/chat_template.jinja", found->second.jinja);
  std::filesystem::remove_all(directory + "/additional_chat_templates");
}

}  // namespace collimate::text
