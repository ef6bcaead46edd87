#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/text/chat_template.h"

namespace collimate::text {

Renderer::Renderer(const Tokenizer& tokenizer, std::unique_ptr<ChatTemplate> chat, RenderOptions options)
    : tokenizer_(tokenizer), chat_(std::move(chat)), options_(options) {
  COLLIMATE_CHECK(chat_ != nullptr);
}

// The prompt as messages; empty where it is text or ids that are taken as they are.
Messages Renderer::as_messages(const Prompt& prompt) const {
  if (const auto* messages = std::get_if<Messages>(&prompt)) return *messages;
  const auto* text = std::get_if<std::string>(&prompt);
  if (text != nullptr && options_.wrap_text == WrapText::kAsUserMessage) return {{"user", *text}};
  return {};
}

std::string Renderer::prompt_text(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return tokenizer_.decode(*ids, false);
  const Messages messages = as_messages(prompt);
  if (!messages.empty() || std::holds_alternative<Messages>(prompt)) return chat_->render(messages, true);
  return std::get<std::string>(prompt);
}

std::vector<int32_t> Renderer::encode_prompt(const std::string& text) const {
  std::vector<int32_t> ids = tokenizer_.encode(text, {.add_special = true, .open_end = true});
  const auto bos = tokenizer_.bos_id();
  // A template that writes bos itself must not give it twice.
  if (bos && ids.size() > 1 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  return ids;
}

std::vector<int32_t> Renderer::prompt_tokens(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  return encode_prompt(prompt_text(prompt));
}

void Renderer::append(RenderedTokens& out, const std::string& text, bool trainable) const {
  const std::vector<int32_t> ids = out.ids.empty() ? encode_prompt(text) : tokenizer_.encode(text, {.continues = true});
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.trainable.resize(out.ids.size(), trainable ? 1 : 0);
}

// Gives what the template writes after `opening` for the last message. A template that writes a finished turn in
// another way than it opens one (verl's separator stands in the generation prompt alone) gives the bare content.
std::string Renderer::answer_text(std::span<const Message> messages, const std::string& opening) const {
  const std::string closed = chat_->render(messages, false);
  return closed.starts_with(opening) ? closed.substr(opening.size()) : messages.back().content;
}

// Where the tokenizer has no special token for the template's end of a turn, eos stands in its place after the last
// one: trained on the text of the mark, a model would say it. Between turns the text stays, as a prompt has it.
void Renderer::append_answer(RenderedTokens& out, const std::string& answer, const std::string& content,
                             bool last) const {
  const size_t at = answer.find(content);
  const size_t end = at == std::string::npos ? answer.size() : at + content.size();
  const size_t before = out.ids.size();
  append(out, answer.substr(0, end), true);
  if (!options_.end_turn) return;
  const std::vector<int32_t> mark = tokenizer_.encode(answer.substr(end), {.continues = true});
  const bool special = std::any_of(mark.begin(), mark.end(), [&](int32_t id) { return tokenizer_.is_special(id); });
  // An answer that says its own end, "a</s>", has no second one.
  std::optional<int32_t> stop;
  if (special) stop = mark.front();
  if (!special && (last || mark.empty())) stop = tokenizer_.eos_id();
  if (out.ids.size() > before && stop && tokenizer_.is_special(*stop) && out.ids.back() == *stop) {
    out.ids.pop_back();
    out.trainable.pop_back();
  }
  if (!special && tokenizer_.eos_id() && (last || mark.empty())) {
    out.ids.push_back(*tokenizer_.eos_id());
    out.trainable.push_back(1);
    return;
  }
  bool ended = !special && tokenizer_.eos_id();
  for (const int32_t id : mark) {
    out.ids.push_back(id);
    out.trainable.push_back(ended ? 0 : 1);
    ended = ended || tokenizer_.is_special(id);
  }
}

RenderedTokens Renderer::render_tokens(const Prompt& prompt, const std::string& completion) const {
  Messages messages = as_messages(prompt);
  if (!messages.empty()) {
    messages.push_back({"assistant", completion});
    return render_tokens(messages);
  }
  RenderedTokens out;
  out.ids = prompt_tokens(prompt);
  out.trainable.assign(out.ids.size(), options_.train_on == TrainOn::kAllTokens ? 1 : 0);
  out.prompt_tokens = static_cast<int64_t>(out.ids.size());
  append_answer(out, completion, completion, true);
  return out;
}

RenderedTokens Renderer::render_tokens(std::span<const Message> messages) const {
  if (messages.empty() || messages.back().role != "assistant") {
    throw base::InputError(base::expectation("messages", "a last message by the assistant",
                                             messages.empty() ? "no message" : "'" + messages.back().role + "'"));
  }
  const bool last_only = options_.train_on == TrainOn::kCompletion;
  const bool all = options_.train_on == TrainOn::kAllTokens;
  RenderedTokens out;
  std::string done;
  for (size_t turn = last_only ? messages.size() - 1 : 0; turn < messages.size(); ++turn) {
    if (messages[turn].role != "assistant") continue;
    const std::string opening = chat_->render(messages.first(turn), true);
    if (!opening.starts_with(done)) {
      throw base::InputError(base::expectation("chat template", "turns that only add text, to train on several",
                                               chat_->description(), "training on the completion alone"));
    }
    append(out, opening.substr(done.size()), all);
    out.prompt_tokens = static_cast<int64_t>(out.ids.size());
    const std::string answer = answer_text(messages.first(turn + 1), opening);
    append_answer(out, answer, messages[turn].content, turn + 1 == messages.size());
    done = opening + answer;
  }
  return out;
}

}  // namespace collimate::text
