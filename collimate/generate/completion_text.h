#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/text/stop_text.h"
#include "collimate/text/tokenizer.h"

namespace collimate::generate {

// Has one of the ids a text that is shown? Special tokens have none.
bool has_text(const text::Tokenizer& tokenizer, std::span<const int32_t> ids);

// The text of one completion as its tokens come, special tokens left out, cut before its stop string: what a caller
// shows. It continues the prompt: the two texts joined are the text of all ids, so a leading space that SentencePiece's
// decoding drops at the beginning of a text stays where the prompt has text, as in vLLM. The tokens of a request that a
// stop string ended go up to the one that completed it, so their plain decoding has the stop string and perhaps more.
// As in vLLM the first min_tokens tokens complete none.
class CompletionText {
 public:
  // Keeps a reference to the tokenizer. `shown`: special tokens that are shown all the same.
  CompletionText(const text::Tokenizer& tokenizer, const SamplingParams& params, std::span<const int32_t> prompt,
                 std::vector<int32_t> shown = {});

  // The text that is certain after `token`: no part of a UTF-8 character, nothing that a stop string may begin with.
  std::string push(int32_t token);
  // The completion has ended: what was held back.
  std::string finish();
  // A stop string is complete; nothing more comes out.
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

// Gives the text of a whole completion. Without stop strings it is what tokenizer.decode of prompt and tokens has
// behind tokenizer.decode(prompt).
std::string completion_text(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                            std::span<const int32_t> tokens, const SamplingParams& params);

}  // namespace collimate::generate
