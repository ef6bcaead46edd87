#include "collimate/generate/completion_text.h"

#include <algorithm>
#include <utility>

namespace collimate::generate {

bool has_text(const text::Tokenizer& tokenizer, std::span<const int32_t> ids) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](int32_t id) { return !tokenizer.is_special(id) && !tokenizer.token_bytes(id).empty(); });
}

CompletionText::CompletionText(const text::Tokenizer& tokenizer, const SamplingParams& params,
                               std::span<const int32_t> prompt, std::vector<int32_t> shown)
    : tokenizer_(tokenizer),
      shown_(std::move(shown)),
      decoder_(tokenizer, /*skip_special=*/shown_.empty()),
      stop_(params.stop),
      min_tokens_(params.min_tokens) {
  decoder_.follow(prompt);
}

std::string CompletionText::push(int32_t token) {
  ++tokens_;
  const bool hidden = !shown_.empty() && tokenizer_.is_special(token) && std::ranges::count(shown_, token) == 0;
  return stop_.push(hidden ? "" : decoder_.push(token), may_stop());
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
