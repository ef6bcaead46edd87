#include "collimate/text/chat_template.h"

#include <optional>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/text/known_templates.h"

namespace collimate::text {
namespace {

// A frame stands around a role's content.
struct RoleFrame {
  std::string role;
  std::string before, after;
};

// A template in which each message is its content in its role's frame. With `any_role`, a role without a frame uses
// the first frame with its own name in the place of "{role}".
struct FrameTable {
  std::vector<RoleFrame> frames;
  bool any_role = false;
  std::string default_system;  // put in front when the first message is not a system message; empty for none
  std::string generation_prompt;
  std::string description;
  bool marks_turns = true;
};

std::string with_role(std::string text, const std::string& role) {
  const size_t at = text.find("{role}");
  if (at != std::string::npos) text.replace(at, 6, role);
  return text;
}

class FrameTemplate : public ChatTemplate {
 public:
  explicit FrameTemplate(FrameTable table) : table_(std::move(table)) {}

  std::string render(std::span<const Message> messages, bool add_generation_prompt) const override {
    std::string out;
    if (!table_.default_system.empty() && (messages.empty() || messages[0].role != "system")) {
      out += framed({"system", table_.default_system});
    }
    for (const Message& message : messages) out += framed(message);
    if (add_generation_prompt) out += table_.generation_prompt;
    return out;
  }
  std::string description() const override { return table_.description; }
  bool marks_turns() const override { return table_.marks_turns; }

 private:
  std::string framed(const Message& message) const {
    for (const RoleFrame& frame : table_.frames) {
      if (frame.role == message.role || table_.any_role) {
        return with_role(frame.before, message.role) + message.content + frame.after;
      }
    }
    throw base::InputError(base::expectation("chat template", "a role of " + table_.description,
                                             "'" + message.role + "'", "data without that role"));
  }

  FrameTable table_;
};

FrameTable chatml(const std::string& default_system, const std::string& reason) {
  FrameTable table;
  table.frames = {{"{role}", "<|im_start|>{role}\n", "<|im_end|>\n"}};
  table.any_role = true;
  table.default_system = default_system;
  table.generation_prompt = "<|im_start|>assistant\n";
  table.description = "ChatML, " + reason;
  if (!default_system.empty()) table.description += fmt::format(", default system message '{}'", default_system);
  return table;
}

// ChatML whose template writes the results of tools in a form of its own.
FrameTable chatml_without_tools(const std::string& default_system, const std::string& reason) {
  FrameTable table = chatml(default_system, reason);
  const RoleFrame frame = table.frames[0];
  table.frames.clear();
  for (const char* role : {"system", "user", "assistant"}) table.frames.push_back({role, frame.before, frame.after});
  table.any_role = false;
  return table;
}

// Contents joined with nothing around them; `separator` ends the prompt.
FrameTable plain(const std::string& separator, const std::string& reason) {
  FrameTable table;
  table.frames.push_back({});
  table.any_role = true;
  table.generation_prompt = separator;
  table.description = "plain contents, " + reason;
  if (!separator.empty()) table.description += fmt::format(", '{}' before the answer", separator);
  return table;
}

FrameTable user_bot(const std::string& eos, const std::string& reason) {
  FrameTable table;
  table.frames = {{"user", "User: ", "\n"}, {"assistant", "Bot: ", eos + "\n"}};
  table.generation_prompt = "Bot:";
  table.description = "User: / Bot: turns, " + reason;
  return table;
}

// The template that a configuration chooses by name; none for another choice.
std::optional<TemplateForm> form_of(const std::string& choice) {
  if (choice == "chatml") return TemplateForm::kChatMl;
  if (choice == "plain") return TemplateForm::kContents;
  if (choice == "user-bot") return TemplateForm::kUserBot;
  return std::nullopt;
}

constexpr const char* kChoices = "models.<role>.chat_template (--chat-template) chatml, plain or user-bot";

// In the place of a template that is not recognised: prompts that are text do without one.
class Unrecognised : public ChatTemplate {
 public:
  explicit Unrecognised(const std::string& jinja) : begin_(jinja.substr(0, 80) + "…") {}

  std::string render(std::span<const Message>, bool) const override {
    throw base::InputError(base::expectation(
        "chat template", "one that is recognised (ChatML, plain contents) to render messages with", begin_, kChoices));
  }
  std::string description() const override {
    return "none: the model's is not recognised, set " + std::string(kChoices);
  }

 private:
  std::string begin_;
};

// The built-in template of a form. `separator` and `eos` are the tokenizer's.
FrameTable table_of(const RecognisedTemplate& found, const TokenizerInfo& info, const std::string& eos,
                    const std::string& reason) {
  switch (found.form) {
    case TemplateForm::kChatMl:
      return chatml(found.default_system, reason);
    case TemplateForm::kChatMlWithTools:
      return chatml_without_tools(found.default_system, reason);
    case TemplateForm::kContents:
      return plain("", reason);
    case TemplateForm::kSeparator:
      return plain(info.separator, reason);
    case TemplateForm::kUserBot:
      return user_bot(eos, reason);
  }
  COLLIMATE_CHECK(false, "a form of no template");
}

// The built-in template that says what the tokenizer's own says.
std::optional<FrameTable> recognise(const Tokenizer& tokenizer, const std::string& eos) {
  const TokenizerInfo& info = tokenizer.info();
  if (info.chat_template.empty()) {
    FrameTable table = plain("", "because the model has no chat template (a base model)");
    table.marks_turns = false;
    return table;
  }
  const std::optional<RecognisedTemplate> found = recognise_template(info.chat_template);
  if (!found) return std::nullopt;
  return table_of(*found, info, eos, "recognised in the model's template");
}

}  // namespace

std::unique_ptr<ChatTemplate> make_chat_template(const Tokenizer& tokenizer, const std::string& choice) {
  const std::string eos = tokenizer.eos_id() ? tokenizer.token_bytes(*tokenizer.eos_id()) : "";
  std::optional<FrameTable> table;
  if (choice == "auto") {
    table = recognise(tokenizer, eos);
  } else if (const std::optional<TemplateForm> form = form_of(choice)) {
    table = table_of({*form, ""}, tokenizer.info(), eos, "as configured");
  } else {
    throw base::InputError(base::expectation("chat_template", "auto, chatml, plain or user-bot", "'" + choice + "'"));
  }
  if (!table) return std::make_unique<Unrecognised>(tokenizer.info().chat_template);
  return std::make_unique<FrameTemplate>(std::move(*table));
}

void save_chat_template(const std::string& choice, const std::string& directory) {
  const std::optional<TemplateForm> form = form_of(choice);
  if (form) host::write_file_atomically(directory + "/chat_template.jinja", jinja_of(*form));
}

}  // namespace collimate::text
