#include "collimate/generate/completion_text.h"

#include <algorithm>

namespace collimate::generate {

bool has_text(const text::Tokenizer& tokenizer, std::span<const int32_t> ids) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](int32_t id) { return !tokenizer.is_special(id) && !tokenizer.token_bytes(id).empty(); });
}

CompletionText::CompletionText(const text::Tokenizer& tokenizer, const SamplingParams& params,
                               std::span<const int32_t> prompt)
    : decoder_(tokenizer), stop_(params.stop), min_tokens_(params.min_tokens) {
  decoder_.follow(prompt);
}

std::string CompletionText::push(int32_t token) {
  ++tokens_;
  return stop_.push(decoder_.push(token), may_stop());
}

std::string CompletionText::finish() {
  std::string rest = stop_.push(decoder_.finish(), may_stop());
  return rest + stop_.finish();
}

std::string completion_text(const text::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                            std::span<const int32_t> tokens, const SamplingParams& params) {
  CompletionText completion(tokenizer, params, prompt);
  std::string text;
  for (const int32_t token : tokens) text += completion.push(token);
  return text + completion.finish();
}

}  // namespace collimate::generate
