#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/text/stop_text.h"
#include "collimate/text/tokenizer.h"

namespace collimate::generate {

// Returns whether one of the ids has a text that is shown. Special tokens have none.
bool has_text(const text::Tokenizer& tokenizer, std::span<const int32_t> ids);

// Decodes one completion, token by token, to the text that a caller shows: without special tokens and cut before its
// stop string. The text continues the prompt, so that both joined are the text of all ids: a leading space, which
// SentencePiece's decoding drops at the beginning of a text, stays if the prompt has text, as in vLLM. If a stop string
// ended the request, the tokens go up to the one that completed it, so that their plain decoding has the stop string
// and perhaps more. As in vLLM the first min_tokens tokens complete no stop string.
class CompletionText {
 public:
  // Keeps a reference to the tokenizer. `shown` lists special tokens that are shown all the same.
  CompletionText(const text::Tokenizer& tokenizer, const SamplingParams& params, std::span<const int32_t> prompt,
                 std::vector<int32_t> shown = {});

  // Returns the further text that is certain after `token`. An incomplete UTF-8 character, and text with which a stop
  // string may begin, is held back.
  std::string push(int32_t token);
  // Returns the text that was held back, as the completion has ended.
  std::string finish();
  // Returns whether a stop string is complete; no more text comes then.
  bool stopped() const { return stop_.matched(); }

 private:
  bool may_stop() const { return tokens_ > min_tokens_; }

  const text::Tokenizer& tokenizer_;
  std::vector<int32_t> shown_;
  text::StreamDecoder decoder_;
  text::StopText stop_;
  int64_t min_tokens_;
  int64_t tokens_ = 0;
};

// Returns the text of a whole completion. Without stop strings it is the part of tokenizer.decode(prompt + tokens) that
// follows tokenizer.decode(prompt).
std::string completion_text(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                            std::span<const int32_t> tokens, const SamplingParams& params);

}  // namespace collimate::generate
