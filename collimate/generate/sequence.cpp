#include "collimate/generate/sequence.h"

#include "collimate/base/contains.h"

namespace collimate::generate {

void Sequence::follow_from_start(std::span<const int32_t> eos_ids, const text::Tokenizer* tokenizer) {
  history.start(params, eos_ids, ids, prompt_tokens);
  text.reset();
  if (params.stop.empty()) return;
  text.emplace(*tokenizer, params, std::span<const int32_t>(ids).first(prompt_tokens));
  for (const int32_t token : std::span(ids).subspan(prompt_tokens)) text->push(token);
}

void Sequence::append(int32_t token, float log_prob, int64_t version, std::span<const TokenLogProb> top) {
  ids.push_back(token);
  log_probs.push_back(log_prob);
  versions.push_back(version);
  top_log_probs.insert(top_log_probs.end(), top.begin(), top.end());
  history.append(token);
  if (text) text->push(token);
}

Finish finish_of(const Sequence& sequence, std::span<const int32_t> eos_ids) {
  const SamplingParams& params = sequence.params;
  const int32_t token = sequence.ids.back();
  if (!params.ignore_eos && base::contains(eos_ids, token)) return Finish::kEos;
  if (base::contains(params.stop_ids, token)) return Finish::kStop;
  if (sequence.text && sequence.text->stopped()) return Finish::kStop;
  if (sequence.tokens_left() <= 0) return Finish::kLength;
  return sequence.history.stuck() ? Finish::kError : Finish::kRunning;
}

}  // namespace collimate::generate
