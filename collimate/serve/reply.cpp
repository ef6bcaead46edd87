#include "collimate/serve/reply.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/text/utf8.h"

namespace collimate::serve {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

ordered_json empty_text_log_probs(bool top) {
  return {{"tokens", ordered_json::array()},
          {"token_logprobs", ordered_json::array()},
          {"top_logprobs", top ? ordered_json::array() : ordered_json()},
          {"text_offset", ordered_json::array()}};
}

// Returns a token's name in the legacy form. Bytes that are no whole characters are written as OpenAI does,
// "bytes:\xe2", so that tokens of different bytes have different names.
std::string token_name(const std::string& bytes) {
  if (text::is_valid_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

// Returns the id of one call of one answer: nine letters and digits, the only form that Mistral's templates take.
std::string call_id(const std::string& answer, int64_t choice, int64_t number) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  uint64_t bits = base::stable_hash(fmt::format("{} {} {}", answer, choice, number));
  std::string id;
  for (; id.size() < 9; bits /= kDigits.size()) id += kDigits[bits % kDigits.size()];
  return id;
}

}  // namespace

Reply::Reply(const ApiRequest& request, const std::vector<PromptTokens>& prompts, const text::Tokenizer& tokenizer,
             std::string model, std::string id, int64_t created)
    : request_(request),
      prompts_(prompts),
      tokenizer_(tokenizer),
      model_(std::move(model)),
      id_(std::move(id)),
      created_(created),
      choices_(static_cast<size_t>(request.choices())),
      sent_calls_(static_cast<size_t>(request.choices())) {
  for (int64_t choice = 0; choice < request.choices(); ++choice) {
    base::at(choices_, choice).choice = choice;
    places_.push_back(beginning(choice));
  }
}

const PromptTokens& Reply::prompt_of(int64_t choice) const {
  return base::at(prompts_, choice / request_.choices_per_prompt);
}

Reply::TextPlace Reply::beginning(int64_t choice) const {
  return {.begun = generate::has_text(tokenizer_, prompt_of(choice).ids)};
}

ordered_json Reply::envelope(const char* chat_object) const {
  const bool chat = request_.endpoint == Endpoint::kChat;
  return {{"id", id_},
          {"object", chat ? chat_object : "text_completion"},
          {"created", created_},
          {"model", model_},
          {"choices", ordered_json::array()}};
}

ordered_json Reply::usage() const {
  int64_t prompt_tokens = 0;
  for (const PromptTokens& prompt : prompts_) prompt_tokens += static_cast<int64_t>(prompt.ids.size());
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", completion_tokens_},
          {"total_tokens", prompt_tokens + completion_tokens_}};
}

void Reply::add(const Delta& delta) {
  Delta& choice = base::at(choices_, delta.choice);
  choice.text += delta.text;
  choice.thoughts += delta.thoughts;
  choice.tokens.insert(choice.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  choice.log_probs.insert(choice.log_probs.end(), delta.log_probs.begin(), delta.log_probs.end());
  choice.top_log_probs.insert(choice.top_log_probs.end(), delta.top_log_probs.begin(), delta.top_log_probs.end());
  choice.calls.insert(choice.calls.end(), delta.calls.begin(), delta.calls.end());
  choice.finish_reason = delta.finish_reason;
  completion_tokens_ += static_cast<int64_t>(delta.tokens.size());
}

ordered_json Reply::chat_token(const generate::TokenLogProb& token) const {
  const std::string bytes = tokenizer_.token_bytes(token.token);
  return {{"token", text::valid_utf8(bytes)},
          {"logprob", token.log_prob},
          {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}};
}

ordered_json Reply::chat_log_probs(const Delta& delta) const {
  ordered_json content = ordered_json::array();
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    ordered_json entry = chat_token({delta.tokens[i], delta.log_probs[i]});
    ordered_json top = ordered_json::array();
    for (const auto& token : generate::top_of(delta.top_log_probs, delta.tokens.size(), i)) {
      top.push_back(chat_token(token));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// Returns log-probs by token's name, of the most likely tokens and the text's own. If two tokens have the same name,
// the first of them stays, which is the more likely one.
ordered_json Reply::text_top(std::span<const generate::TokenLogProb> top, const generate::TokenLogProb& own) const {
  ordered_json out = ordered_json::object();
  const auto add = [&](const generate::TokenLogProb& token) {
    const std::string name = token_name(tokenizer_.token_bytes(token.token));
    if (!out.contains(name)) out[name] = token.log_prob;
  };
  std::for_each(top.begin(), top.end(), add);
  add(own);
  return out;
}

void Reply::append_prompt_log_probs(int64_t choice, ordered_json& out, TextPlace& place) const {
  const PromptTokens& prompt = prompt_of(choice);
  // A bos that was put in front of the tokens has no characters in the text.
  int64_t offset = base::characters_in(prompt.text) - base::characters_in(tokenizer_.decode(prompt.ids, false));
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    const std::string bytes = tokenizer_.token_bytes(prompt.ids[i]);
    out["tokens"].push_back(token_name(bytes));
    out["token_logprobs"].push_back(i == 0 ? ordered_json() : ordered_json(prompt.log_probs[i]));
    out["text_offset"].push_back(std::max<int64_t>(0, offset));
    if (request_.top_log_probs > 0) {
      const auto top = generate::top_of(prompt.top_log_probs, prompt.ids.size(), i);
      out["top_logprobs"].push_back(i == 0 ? ordered_json() : text_top(top, {prompt.ids[i], prompt.log_probs[i]}));
    }
    offset += base::characters_in(bytes);
  }
  place.characters = base::characters_in(prompt.text);
}

// Returns log-probs in the legacy form: lists side by side.
ordered_json Reply::text_log_probs(const Delta& delta, bool with_prompt, TextPlace& place) const {
  ordered_json out = empty_text_log_probs(request_.top_log_probs > 0);
  if (with_prompt) append_prompt_log_probs(delta.choice, out, place);
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    const std::string bytes = tokenizer_.token_bytes(delta.tokens[i]);
    out["tokens"].push_back(token_name(bytes));
    out["token_logprobs"].push_back(delta.log_probs[i]);
    out["text_offset"].push_back(place.characters);
    if (request_.top_log_probs > 0) {
      const auto top = generate::top_of(delta.top_log_probs, delta.tokens.size(), i);
      out["top_logprobs"].push_back(text_top(top, {delta.tokens[i], delta.log_probs[i]}));
    }
    const std::span<const int32_t> own(&delta.tokens[i], 1);
    if (!generate::has_text(tokenizer_, own)) continue;
    place.characters += base::characters_in(place.begun ? bytes : tokenizer_.decode(own, false));
    place.begun = true;
  }
  return out;
}

ordered_json Reply::tool_calls(const Delta& delta, int64_t first, bool numbered) const {
  ordered_json out = ordered_json::array();
  for (const text::ToolCall& call : delta.calls) {
    const int64_t number = first + static_cast<int64_t>(out.size());
    ordered_json one = ordered_json::object();
    if (numbered) one["index"] = number;
    one["id"] = call.id.empty() ? call_id(id_, delta.choice, number) : call.id;
    one["type"] = "function";
    one["function"] = {{"name", call.name}, {"arguments", call.arguments}};
    out.push_back(std::move(one));
  }
  return out;
}

ordered_json Reply::whole_choice(const Delta& delta) const {
  const PromptTokens& prompt = prompt_of(delta.choice);
  ordered_json out = {{"index", delta.choice}};
  if (request_.endpoint == Endpoint::kChat) {
    const bool calls_alone = delta.text.empty() && !delta.calls.empty();
    const ordered_json content = calls_alone ? ordered_json() : ordered_json(delta.text);
    out["message"] = {{"role", "assistant"}, {"content", content}, {"refusal", nullptr}};
    if (!delta.thoughts.empty()) out["message"]["reasoning_content"] = delta.thoughts;
    if (!delta.calls.empty()) out["message"]["tool_calls"] = tool_calls(delta, 0, /*numbered=*/false);
    out["logprobs"] = request_.log_probs ? chat_log_probs(delta) : ordered_json();
  } else {
    TextPlace place = beginning(delta.choice);
    out["text"] = (request_.echo ? text::valid_utf8(prompt.text) : "") + delta.text;
    out["logprobs"] = request_.log_probs ? text_log_probs(delta, request_.echo, place) : ordered_json();
  }
  out["finish_reason"] = or_null(delta.finish_reason);
  if (request_.return_token_ids) {
    if (request_.endpoint == Endpoint::kCompletions) out["prompt_token_ids"] = prompt.ids;
    out["token_ids"] = delta.tokens;
  }
  return out;
}

ordered_json Reply::whole() const {
  ordered_json out = envelope("chat.completion");
  for (const Delta& choice : choices_) out["choices"].push_back(whole_choice(choice));
  out["usage"] = usage();
  if (request_.return_token_ids && request_.endpoint == Endpoint::kChat) out["prompt_token_ids"] = prompts_[0].ids;
  return out;
}

std::vector<ordered_json> Reply::opening() {
  std::vector<ordered_json> out;
  for (int64_t choice = 0; choice < request_.choices(); ++choice) {
    const PromptTokens& prompt = prompt_of(choice);
    ordered_json chunk = envelope("chat.completion.chunk");
    ordered_json one = {{"index", choice}};
    if (request_.endpoint == Endpoint::kChat) {
      one["delta"] = {{"role", "assistant"}, {"content", ""}};
      one["logprobs"] = nullptr;
      if (request_.return_token_ids) chunk["prompt_token_ids"] = prompt.ids;
    } else if (request_.echo || request_.return_token_ids) {
      one["text"] = request_.echo ? text::valid_utf8(prompt.text) : "";
      const bool scored = request_.echo && request_.log_probs;
      TextPlace& place = base::at(places_, choice);
      one["logprobs"] = scored ? text_log_probs({.choice = choice}, true, place) : ordered_json();
      if (request_.return_token_ids) one["prompt_token_ids"] = prompt.ids;
    } else {
      continue;
    }
    one["finish_reason"] = nullptr;
    chunk["choices"].push_back(std::move(one));
    if (request_.include_usage) chunk["usage"] = nullptr;
    out.push_back(std::move(chunk));
  }
  return out;
}

ordered_json Reply::chunk(const Delta& delta) {
  completion_tokens_ += static_cast<int64_t>(delta.tokens.size());
  const bool tokens_shown = (request_.log_probs || request_.return_token_ids) && !delta.tokens.empty();
  if (delta.text.empty() && delta.thoughts.empty() && delta.calls.empty() && delta.finish_reason.empty() &&
      !tokens_shown)
    return {};
  ordered_json out = envelope("chat.completion.chunk");
  ordered_json one = {{"index", delta.choice}};
  if (request_.endpoint == Endpoint::kChat) {
    one["delta"] = ordered_json::object();
    if (!delta.text.empty()) one["delta"]["content"] = delta.text;
    if (!delta.thoughts.empty()) one["delta"]["reasoning_content"] = delta.thoughts;
    if (!delta.calls.empty()) {
      int64_t& sent = base::at(sent_calls_, delta.choice);
      one["delta"]["tool_calls"] = tool_calls(delta, sent, /*numbered=*/true);
      sent += static_cast<int64_t>(delta.calls.size());
    }
    one["logprobs"] = request_.log_probs ? chat_log_probs(delta) : ordered_json();
  } else {
    one["text"] = delta.text;
    TextPlace& place = base::at(places_, delta.choice);
    one["logprobs"] = request_.log_probs ? text_log_probs(delta, false, place) : ordered_json();
  }
  one["finish_reason"] = or_null(delta.finish_reason);
  if (request_.return_token_ids) one["token_ids"] = delta.tokens;
  out["choices"].push_back(std::move(one));
  if (request_.include_usage) out["usage"] = nullptr;
  return out;
}

ordered_json Reply::usage_chunk() const {
  ordered_json out = envelope("chat.completion.chunk");
  out["usage"] = usage();
  return out;
}

}  // namespace collimate::serve
