#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/text/answers.h"
#include "collimate/text/conversation.h"
#include "collimate/text/jinja/template.h"
#include "collimate/text/tokenizer.h"
#include "collimate/text/tool_calls.h"

namespace collimate::text {

// Turns messages into one text. Implementations are immutable and may be used by several threads.
class ChatTemplate {
 public:
  virtual ~ChatTemplate() = default;
  // Returns the text of the turns; with `add_generation_prompt` it ends where the assistant's answer begins. Throws
  // InputError for a conversation that the template refuses, and for what the template would leave out: a message of a
  // user or the system, tools, calls of tools or their results, thoughts, or a variable that it does not read.
  virtual std::string render_turns(std::span<const Message> turns, const TemplateInputs& inputs,
                                   bool add_generation_prompt) const = 0;
  std::string render(const Conversation& conversation, bool add_generation_prompt) const {
    return render_turns(conversation.turns, conversation.inputs, add_generation_prompt);
  }
  // Returns false for a model without a template whose configuration chose none: its turns would run into each other.
  virtual bool marks_turns() const { return true; }
  // Returns whether the template for conversations with such inputs marks the assistant's words by {% generation %}.
  virtual bool marks_answers(const TemplateInputs&) const { return false; }
  // Returns the whole conversation with the assistant's words marked, for a template that marks them.
  virtual jinja::MarkedText render_marked(const Conversation& conversation) const {
    return {render(conversation, false), {}};
  }
  // Returns whether the template asks for a variable of that name.
  virtual bool reads(const std::string&) const { return false; }
  // Returns the form in which the template writes calls of tools, for whoever reads them out of an answer.
  virtual CallForm call_form() const { return CallForm::kUnknown; }
  // Returns one line for the user, which says which template was chosen and why.
  virtual std::string description() const = 0;
};

// Makes the template that `choice` names. "auto" is the tokenizer's own Jinja template, and its own one for
// conversations with tools where it has one; where it has no template, contents are joined. The others are "chatml",
// "plain" (contents joined, nothing added) and "user-bot". Where the tokenizer's own cannot be read, rendering messages
// throws InputError, which names its line and the choices; prompts that are text or ids need no template. `variables`
// is an object (chat_template_kwargs); a conversation's own variables take precedence over it. Throws InputError for
// another choice, and for a variable that the template does not read.
std::unique_ptr<ChatTemplate> make_chat_template(const Tokenizer& tokenizer, const std::string& choice = "auto",
                                                 const nlohmann::ordered_json& variables = nullptr);

// Writes the template that `choice` names to DIRECTORY/chat_template.jinja, where readers look first, and removes the
// model's templates for other uses. Does nothing for "auto".
void save_chat_template(const std::string& choice, const std::string& directory);

// Says which tokens of a rendered example carry loss. The assistant's turns are the parts that the template marks as
// such. For a template that marks nothing they are what each turn adds to the text of the turns before it; where later
// turns change that text, they are what find_answers finds.
enum class TrainOn { kCompletion, kAssistantTurns, kAllTokens };
enum class WrapText { kAsIs, kAsUserMessage };  // what becomes of a prompt that is plain text

struct RenderOptions {
  TrainOn train_on = TrainOn::kCompletion;
  WrapText wrap_text = WrapText::kAsIs;
  bool end_turn = true;  // behind the completion stands the mark that ends a turn, or eos where the template has none
};

struct RenderedTokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trainable;  // 1 where the token carries loss; as long as ids
  int64_t prompt_tokens = 0;
  bool cut = false;  // the example was longer than it may be
};

// Turns prompts and completions into ids with a trainable mask. Prompt and completion are tokenized apart, so that the
// prompt's ids are those that generation starts from, and only what generation itself makes is trained on: the answer,
// its stop token included. Keeps a reference to the tokenizer.
class Renderer {
 public:
  Renderer(const Tokenizer& tokenizer, std::unique_ptr<ChatTemplate> chat, RenderOptions options = {});

  // Returns the ids that generation starts from. For a conversation they are those of the template's text alone, with
  // the generation prompt; for a text (and for a conversation without a template) bos comes ahead where the model wants
  // one.
  std::vector<int32_t> prompt_tokens(const Prompt& prompt) const;
  std::string prompt_text(const Prompt& prompt) const;
  RenderedTokens render_tokens(const Prompt& prompt, const std::string& completion) const;
  RenderedTokens render_tokens(const Prompt& prompt, const Message& answer) const;
  // Renders a conversation that ends with the assistant. `train_on` decides whether that turn, all turns of the
  // assistant or everything is trained. Throws InputError for another last role, or where a turn does not have exactly
  // one place in the template's text.
  RenderedTokens render_tokens(const Conversation& conversation) const;

  // Returns the ids that follow an assistant's turn as generation left it, up to where its next turn begins: what the
  // template writes behind the turn's words, the reply to it, and the generation prompt. The turn's own ids stay as
  // they were drawn: where the last of them, `last`, is what the template writes first, it is not written twice. A
  // prompt that is no conversation of the template (`prompt` has not the opening of an answer at its end) is followed
  // by the reply's content alone. Throws InputError where the template does not write a turn's words as they are, or
  // refuses the reply.
  std::vector<int32_t> reply_tokens(const Message& reply, std::span<const int32_t> prompt, int32_t last) const;

  // Returns whether the template leaves out the thoughts of an answer that is trained, as DeepSeek-R1's does.
  bool leaves_out_thoughts(const Prompt& prompt, const Message& answer) const;

  const ChatTemplate& chat() const { return *chat_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const RenderOptions& options() const { return options_; }

 private:
  std::optional<Conversation> as_conversation(const Prompt& prompt) const;
  bool opens_answer(std::span<const int32_t> prompt) const;
  std::vector<int32_t> encode_conversation(const std::string& text) const;
  std::vector<int32_t> encode_text(const std::string& text) const;
  void append(RenderedTokens& out, const std::string& text, bool trainable) const;
  std::optional<Answer> added_answer(std::span<const Message> turns, const TemplateInputs& inputs,
                                     const std::string& opening) const;
  std::optional<std::vector<Answer>> added_answers(const Conversation& conversation) const;
  void append_answer(RenderedTokens& out, const std::string& said, const std::string& end, bool last) const;
  RenderedTokens render_marked(const Conversation& conversation) const;
  RenderedTokens with_all_wanted(RenderedTokens tokens) const;
  void append_calls(RenderedTokens& out, const std::string& answer, bool last) const;

  const Tokenizer& tokenizer_;
  std::unique_ptr<ChatTemplate> chat_;
  RenderOptions options_;
};

}  // namespace collimate::text
