#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/text/answers.h"
#include "collimate/text/chat_template.h"
#include "collimate/text/stand_in.h"
#include "collimate/text/thoughts.h"

namespace collimate::text {

Renderer::Renderer(const Tokenizer& tokenizer, std::unique_ptr<ChatTemplate> chat, RenderOptions options)
    : tokenizer_(tokenizer), chat_(std::move(chat)), options_(options) {
  COLLIMATE_CHECK(chat_ != nullptr);
}

// Returns nothing where the prompt is text or ids that are taken as they are.
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

// Adds nothing to what a template writes, as in transformers (apply_chat_template), TRL and vLLM. Contents that no
// template joins are encoded as any other text.
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

// Says whether a prompt has, at its end, what the template writes where an answer begins. A few tokens may follow it,
// as an empty thought does.
bool Renderer::opens_answer(std::span<const int32_t> prompt) const {
  constexpr size_t kMostBehind = 32;
  if (!chat_->marks_turns()) return false;
  const Messages asked{{"user", "Wxq"}};
  const std::string before = chat_->render_turns(asked, {}, false), opened = chat_->render_turns(asked, {}, true);
  std::string opening = opened.starts_with(before) ? opened.substr(before.size()) : "";
  if (opening.empty())  // the end of the user's turn opens the answer, as in Llama 2 and Mistral
    if (const std::optional<Between> parts = split_at_word(opened, "Wxq")) opening = parts->behind;
  const std::vector<int32_t> ids = tokenizer_.encode(opening, {.continues = true});
  const auto end = prompt.last(std::min(prompt.size(), ids.size() + kMostBehind));
  return !ids.empty() && std::search(end.begin(), end.end(), ids.begin(), ids.end()) != end.end();
}

std::vector<int32_t> Renderer::reply_tokens(const Message& reply, std::span<const int32_t> prompt, int32_t last) const {
  if (!opens_answer(prompt)) return tokenizer_.encode(reply.content, {.continues = true});
  const std::string word = word_outside(reply.content, "Wxq");
  const Messages turns{{"user", "a"}, {"assistant", word}, reply};
  const std::optional<Between> parts = split_at_word(chat_->render_turns(turns, {}, true), word);
  if (!parts)
    throw base::InputError(base::expectation("chat template", "the words of an assistant's turn as they are",
                                             "a template that changes them", "another chat_template"));
  std::vector<int32_t> ids = tokenizer_.encode(parts->behind, {.continues = true});
  if (!ids.empty() && ids.front() == last) ids.erase(ids.begin());
  return ids;
}

void Renderer::append(RenderedTokens& out, const std::string& text, bool trainable) const {
  const std::vector<int32_t> ids =
      out.ids.empty() ? encode_conversation(text) : tokenizer_.encode(text, {.continues = true});
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.trainable.resize(out.ids.size(), trainable ? 1 : 0);
}

// Where the tokenizer has no special token for the template's end of a turn, eos takes its place after the last turn: a
// model that is trained on the text of the mark would say it. Between turns the text stays, as a prompt has it. A mark
// is trained up to its stop token, or to its first special one (Cohere's have two).
void Renderer::append_answer(RenderedTokens& out, const std::string& said, const std::string& end, bool last) const {
  const size_t before = out.ids.size();
  append(out, said, true);
  if (!options_.end_turn) return;
  const std::vector<int32_t> mark = tokenizer_.encode(end, {.continues = true});
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
  auto ended = std::ranges::find_first_of(mark, tokenizer_.info().stop_ids);
  if (ended == mark.end()) ended = std::ranges::find_if(mark, [&](int32_t id) { return tokenizer_.is_special(id); });
  const bool open = ended == mark.end() && tokenizer_.eos_id();
  const size_t left = ended == mark.end() ? 0 : static_cast<size_t>(mark.end() - ended) - 1;
  out.ids.insert(out.ids.end(), mark.begin(), mark.end());
  out.trainable.resize(out.ids.size() - (open ? mark.size() : left), 1);
  out.trainable.resize(out.ids.size(), 0);
}

// The template decides how calls of tools look, and their last special token ends the turn. Where they have none, eos
// stands after the last turn.
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
  out.trainable.assign(out.ids.size(), 0);
  out.prompt_tokens = static_cast<int64_t>(out.ids.size());
  append_answer(out, answer.content, "", true);
  return with_all_wanted(std::move(out));
}

// Marks every token as trained with data.train_on: all_tokens, also what stands behind an answer's stop token, as in
// TRL's full loss.
RenderedTokens Renderer::with_all_wanted(RenderedTokens tokens) const {
  if (options_.train_on == TrainOn::kAllTokens) tokens.trainable.assign(tokens.ids.size(), 1);
  return tokens;
}

bool Renderer::leaves_out_thoughts(const Prompt& prompt, const Message& answer) const {
  auto conversation = as_conversation(prompt);
  if (!conversation) return false;
  conversation->turns.push_back(answer);
  std::vector<std::string> thoughts;
  for (const Message& turn : conversation->turns)
    if (turn.role == "assistant" && (options_.train_on != TrainOn::kCompletion || &turn == &conversation->turns.back()))
      thoughts.push_back(thoughts_of(turn));
  std::erase(thoughts, "");
  if (thoughts.empty()) return false;
  const std::string text = chat_->render(*conversation, false);
  return std::ranges::any_of(thoughts, [&](const auto& one) { return text.find(one) == std::string::npos; });
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

// Returns what the last message adds to `opening`, its prompt; nothing where the template does not write it behind
// that. The same words may stand in its thoughts, so that a word that no text has shows where the content ends.
std::optional<Answer> Renderer::added_answer(std::span<const Message> turns, const TemplateInputs& inputs,
                                             const std::string& opening) const {
  const std::string closed = chat_->render_turns(turns, inputs, false);
  if (!closed.starts_with(opening)) return std::nullopt;
  if (turns.back().calls_tools()) return Answer{.said = closed.substr(opening.size()), .calls = true};
  Messages others(turns.begin(), turns.end());
  others.back().content = word_outside(closed, "Xanswer");
  const auto split = split_at_word(chat_->render_turns(others, inputs, false), others.back().content);
  if (!split || !std::string_view(closed).substr(opening.size()).ends_with(split->behind)) return std::nullopt;
  const size_t end = closed.size() - split->behind.size();
  return Answer{.said = closed.substr(opening.size(), end - opening.size()), .mark = split->behind};
}

// Returns what each turn adds to the text of the turns before it; nothing where a later turn changes an earlier one's
// text.
std::optional<std::vector<Answer>> Renderer::added_answers(const Conversation& conversation) const {
  const std::span<const Message> turns(conversation.turns);
  std::vector<Answer> answers;
  std::string done;
  for (size_t turn = options_.train_on == TrainOn::kCompletion ? turns.size() - 1 : 0; turn < turns.size(); ++turn) {
    if (turns[turn].role != "assistant") continue;
    const std::string opening = chat_->render_turns(turns.first(turn), conversation.inputs, true);
    if (!opening.starts_with(done)) return std::nullopt;
    auto answer = added_answer(turns.first(turn + 1), conversation.inputs, opening);
    if (!answer) return std::nullopt;
    answer->before = opening.substr(done.size());
    done = opening + answer->said + answer->mark;
    answers.push_back(std::move(*answer));
  }
  return answers;
}

RenderedTokens Renderer::render_tokens(const Conversation& conversation) const {
  const Messages& turns = conversation.turns;
  if (turns.empty() || turns.back().role != "assistant") {
    throw base::InputError(base::expectation("messages", "a last message by the assistant",
                                             turns.empty() ? "no message" : "'" + turns.back().role + "'"));
  }
  if (options_.train_on == TrainOn::kAssistantTurns && chat_->marks_answers(conversation.inputs))
    return render_marked(conversation);
  auto added = added_answers(conversation);
  const std::vector<Answer> answers =
      added ? std::move(*added)
            : find_answers(*chat_, tokenizer_, conversation, options_.train_on == TrainOn::kCompletion);
  RenderedTokens out;
  for (const Answer& answer : answers) {
    append(out, answer.before, false);
    out.prompt_tokens = static_cast<int64_t>(out.ids.size());
    const bool last = &answer == &answers.back();
    if (answer.calls)
      append_calls(out, answer.said + answer.mark, last);
    else
      append_answer(out, answer.said, answer.mark, last);
  }
  return with_all_wanted(std::move(out));
}

}  // namespace collimate::text
