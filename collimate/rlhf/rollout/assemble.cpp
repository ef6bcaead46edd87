#include "collimate/rlhf/rollout/assemble.h"

#include "collimate/base/fault.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::rlhf {
namespace {

// `prompt` zeros, then the values.
template <class T>
std::vector<T> after_prompt(size_t prompt, const std::vector<T>& values) {
  std::vector<T> out(prompt, T{});
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

// -1 for the tokens that were not run.
void add_routed_experts(const std::vector<Completion>& completions, int64_t width, Batch& rows) {
  std::vector<std::vector<int16_t>> experts;
  for (const Completion& c : completions) {
    experts.push_back(c.routed_experts);
    experts.back().resize((c.prompt.size() + c.tokens.size()) * static_cast<size_t>(width), -1);
  }
  rows.set_ragged(batch::routed_experts(width), experts);
}

}  // namespace

Batch completion_rows(const std::vector<Completion>& completions, int64_t routed) {
  std::vector<int64_t> uids, prompt_tokens;
  std::vector<int32_t> finishes;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  std::vector<std::vector<float>> log_probs;
  std::vector<std::vector<int64_t>> versions;
  for (const Completion& c : completions) {
    const size_t prompt = c.prompt.size();
    uids.push_back(c.uid);
    prompt_tokens.push_back(static_cast<int64_t>(prompt));
    finishes.push_back(c.finish);
    ids.push_back(c.prompt);
    ids.back().insert(ids.back().end(), c.tokens.begin(), c.tokens.end());
    trainable.push_back(after_prompt(prompt, std::vector<uint8_t>(c.tokens.size(), 1)));
    log_probs.push_back(after_prompt(prompt, c.log_probs));
    for (float& value : log_probs.back()) value = base::fault_value("rollout.log_prob", value);
    versions.push_back(after_prompt(prompt, c.versions));
  }
  Batch rows;
  rows.set(batch::kUid, uids);
  rows.set_ragged(batch::kIds, ids);
  rows.set_ragged(batch::kTrainable, trainable);
  rows.set_ragged(batch::kLogProbs, log_probs);
  rows.set_ragged(batch::kWeightsVersion, versions);
  rows.set(batch::kFinish, finishes);
  rows.set(batch::kPromptTokens, prompt_tokens);
  if (routed > 0) add_routed_experts(completions, routed, rows);
  return rows;
}

}  // namespace collimate::rlhf
