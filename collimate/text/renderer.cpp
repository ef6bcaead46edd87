#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/text/chat_template.h"

namespace collimate::text {

Renderer::Renderer(const Tokenizer& tokenizer, std::unique_ptr<ChatTemplate> chat, RenderOptions options)
    : tokenizer_(tokenizer), chat_(std::move(chat)), options_(options) {
  COLLIMATE_CHECK(chat_ != nullptr);
}

// Nothing where it is text or ids that are taken as they are.
std::optional<Conversation> Renderer::as_conversation(const Prompt& prompt) const {
  if (const auto* conversation = std::get_if<Conversation>(&prompt)) return *conversation;
  const auto* text = std::get_if<std::string>(&prompt);
  if (text != nullptr && options_.wrap_text == WrapText::kAsUserMessage) return Messages{{"user", *text}};
  return std::nullopt;
}

std::string Renderer::prompt_text(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return tokenizer_.decode(*ids, false);
  if (const auto conversation = as_conversation(prompt)) return chat_->render(*conversation, true);
  return std::get<std::string>(prompt);
}

// Nothing is added to what a template writes, as in transformers (apply_chat_template), TRL and vLLM. Contents that no
// template joins are a text like any other.
std::vector<int32_t> Renderer::encode_conversation(const std::string& text) const {
  return chat_->marks_turns() ? tokenizer_.encode(text) : encode_text(text);
}

std::vector<int32_t> Renderer::encode_text(const std::string& text) const {
  std::vector<int32_t> ids = tokenizer_.encode(text, {.add_special = true, .open_end = true});
  const auto bos = tokenizer_.bos_id();
  // A text that writes bos itself must not have it twice.
  if (bos && ids.size() > 1 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  return ids;
}

std::vector<int32_t> Renderer::prompt_tokens(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  const std::string text = prompt_text(prompt);
  return as_conversation(prompt) ? encode_conversation(text) : encode_text(text);
}

void Renderer::append(RenderedTokens& out, const std::string& text, bool trainable) const {
  const std::vector<int32_t> ids =
      out.ids.empty() ? encode_conversation(text) : tokenizer_.encode(text, {.continues = true});
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.trainable.resize(out.ids.size(), trainable ? 1 : 0);
}

// Gives what the template writes after `opening` for the last message. A template that writes a finished turn in
// another way than it opens one (verl's separator stands in the generation prompt alone) gives the bare content.
std::string Renderer::answer_text(std::span<const Message> turns, const TemplateInputs& inputs,
                                  const std::string& opening) const {
  const std::string closed = chat_->render_turns(turns, inputs, false);
  if (closed.starts_with(opening)) return closed.substr(opening.size());
  if (!turns.back().calls_tools()) return turns.back().content;
  throw base::InputError(base::expectation("chat template", "a turn with calls of tools that begins as its prompt ends",
                                           chat_->description(), "rows whose answers call no tools"));
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

// How calls of tools look is the template's: its last special token ends the turn. Where it has none, eos stands after
// the last turn.
void Renderer::append_calls(RenderedTokens& out, const std::string& answer, bool last) const {
  const std::vector<int32_t> ids = tokenizer_.encode(answer, {.continues = true});
  const auto end = std::find_if(ids.rbegin(), ids.rend(), [&](int32_t id) { return tokenizer_.is_special(id); }).base();
  const bool ended = end != ids.begin();
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  if (!ended && last && tokenizer_.eos_id()) out.ids.push_back(*tokenizer_.eos_id());
  out.trainable.resize(out.ids.size() - (ended ? static_cast<size_t>(ids.end() - end) : 0), 1);
  out.trainable.resize(out.ids.size(), 0);
}

RenderedTokens Renderer::render_tokens(const Prompt& prompt, const std::string& completion) const {
  return render_tokens(prompt, Message{"assistant", completion});
}

RenderedTokens Renderer::render_tokens(const Prompt& prompt, const Message& answer) const {
  if (auto conversation = as_conversation(prompt)) {
    conversation->turns.push_back(answer);
    return render_tokens(*conversation);
  }
  RenderedTokens out;
  out.ids = prompt_tokens(prompt);
  out.trainable.assign(out.ids.size(), options_.train_on == TrainOn::kAllTokens ? 1 : 0);
  out.prompt_tokens = static_cast<int64_t>(out.ids.size());
  append_answer(out, answer.content, answer.content, true);
  return out;
}

RenderedTokens Renderer::render_marked(const Conversation& conversation) const {
  const jinja::MarkedText made = chat_->render_marked(conversation);
  if (made.marked.empty())
    throw base::InputError(base::expectation("chat template", "{% generation %} around what the assistant says",
                                             "a conversation in which it marks nothing", "data.train_on: completion"));
  RenderedTokens out;
  size_t done = 0;
  for (const auto& [begin, end] : made.marked) {
    append(out, made.text.substr(done, begin - done), false);
    out.prompt_tokens = static_cast<int64_t>(out.ids.size());
    append(out, made.text.substr(begin, end - begin), true);
    done = end;
  }
  append(out, made.text.substr(done), false);
  return out;
}

RenderedTokens Renderer::render_tokens(const Conversation& conversation) const {
  const std::span<const Message> turns(conversation.turns);
  const TemplateInputs& inputs = conversation.inputs;
  if (turns.empty() || turns.back().role != "assistant") {
    throw base::InputError(base::expectation("messages", "a last message by the assistant",
                                             turns.empty() ? "no message" : "'" + turns.back().role + "'"));
  }
  if (options_.train_on == TrainOn::kAssistantTurns && chat_->marks_answers(conversation.inputs))
    return render_marked(conversation);
  const bool last_only = options_.train_on == TrainOn::kCompletion;
  const bool all = options_.train_on == TrainOn::kAllTokens;
  RenderedTokens out;
  std::string done;
  for (size_t turn = last_only ? turns.size() - 1 : 0; turn < turns.size(); ++turn) {
    if (turns[turn].role != "assistant") continue;
    const std::string opening = chat_->render_turns(turns.first(turn), inputs, true);
    if (!opening.starts_with(done)) {
      throw base::InputError(base::expectation("chat template", "turns that only add text, to train on several",
                                               chat_->description(), "training on the completion alone"));
    }
    append(out, opening.substr(done.size()), all);
    out.prompt_tokens = static_cast<int64_t>(out.ids.size());
    const std::string answer = answer_text(turns.first(turn + 1), inputs, opening);
    if (turns[turn].calls_tools())
      append_calls(out, answer, turn + 1 == turns.size());
    else
      append_answer(out, answer, turns[turn].content, turn + 1 == turns.size());
    done = opening + answer;
  }
  return out;
}

}  // namespace collimate::text
