#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "collimate/serve/api.h"
#include "collimate/serve/completion.h"
#include "collimate/text/tokenizer.h"

namespace collimate::serve {

// A PromptTokens is one prompt in the form that was completed.
struct PromptTokens {
  std::vector<int32_t> ids;
  std::string text;                                   // set for `echo`, which repeats it
  std::vector<float> log_probs;                       // [ids], the first has no meaning; empty if none are wanted
  std::vector<generate::TokenLogProb> top_log_probs;  // [ids, k] as in generate::Emission; the first k have no meaning
};

// A Reply writes the answers to one request, whole or as the chunks of a stream, in OpenAI's form. Additions to that
// form have vLLM's names: prompt_token_ids and token_ids, if `return_token_ids` asks for them, and reasoning_content.
// Log-probs are those at the request's temperature. Use it from one thread.
class Reply {
 public:
  // Keeps references to request, prompts and tokenizer. `created` is in seconds since 1970.
  Reply(const ApiRequest& request, const std::vector<PromptTokens>& prompts, const text::Tokenizer& tokenizer,
        std::string model, std::string id, int64_t created);

  // Adds a delta to the whole answer, or returns that answer.
  void add(const Delta& delta);
  nlohmann::ordered_json whole() const;

  // Returns the chunks that open the choices: a chat's role, the prompt's echo.
  std::vector<nlohmann::ordered_json> opening();
  // Returns the chunk of a delta, null if it has nothing to show.
  nlohmann::ordered_json chunk(const Delta& delta);
  // Returns the chunk with the counts of tokens, which comes last if the request asks for it.
  nlohmann::ordered_json usage_chunk() const;

  int64_t completion_tokens() const { return completion_tokens_; }

 private:
  const PromptTokens& prompt_of(int64_t choice) const;
  nlohmann::ordered_json envelope(const char* chat_object) const;
  nlohmann::ordered_json usage() const;
  nlohmann::ordered_json chat_token(const generate::TokenLogProb& token) const;
  nlohmann::ordered_json chat_log_probs(const Delta& delta) const;
  nlohmann::ordered_json text_top(std::span<const generate::TokenLogProb> top, const generate::TokenLogProb& own) const;
  // A TextPlace says how far a choice's text has come, for text_offset.
  struct TextPlace {
    int64_t characters = 0;
    bool begun = false;  // the next token continues a text: see generate::CompletionText
  };
  TextPlace beginning(int64_t choice) const;
  nlohmann::ordered_json text_log_probs(const Delta& delta, bool with_prompt, TextPlace& place) const;
  void append_prompt_log_probs(int64_t choice, nlohmann::ordered_json& out, TextPlace& place) const;
  nlohmann::ordered_json whole_choice(const Delta& delta) const;
  // `first` is how many calls of the choice came before.
  nlohmann::ordered_json tool_calls(const Delta& delta, int64_t first, bool numbered) const;

  const ApiRequest& request_;
  const std::vector<PromptTokens>& prompts_;
  const text::Tokenizer& tokenizer_;
  const std::string model_, id_;
  const int64_t created_;
  std::vector<Delta> choices_;     // of each choice all that add() was given
  std::vector<TextPlace> places_;  // how far the chunks of each choice have come
  std::vector<int64_t> sent_calls_;
  int64_t completion_tokens_ = 0;
};

}  // namespace collimate::serve
