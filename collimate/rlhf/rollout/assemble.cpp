#include "collimate/rlhf/rollout/assemble.h"

#include "collimate/base/fault.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"

namespace collimate::rlhf {
namespace {

// Returns `prompt` zeros, then the values.
template <class T>
std::vector<T> after_prompt(size_t prompt, const std::vector<T>& values) {
  std::vector<T> out(prompt, T{});
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

// Adds the column routed_experts, with -1 for the tokens that were not run.
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
  batch::TokenRows tokens;
  std::vector<int64_t> prompt_tokens;
  std::vector<int32_t> finishes;
  std::vector<std::vector<float>> log_probs;
  std::vector<std::vector<int64_t>> versions;
  for (const Completion& c : completions) {
    const size_t prompt = c.prompt.size();
    std::vector<int32_t> ids = c.prompt;
    ids.insert(ids.end(), c.tokens.begin(), c.tokens.end());
    if (c.trainable.empty())
      tokens.add(c.uid, std::move(ids), prompt);
    else
      tokens.add(c.uid, std::move(ids), c.trainable);
    prompt_tokens.push_back(static_cast<int64_t>(prompt));
    finishes.push_back(c.finish);
    log_probs.push_back(after_prompt(prompt, c.log_probs));
    for (float& value : log_probs.back()) value = base::fault_value("rollout.log_prob", value);
    versions.push_back(after_prompt(prompt, c.versions));
  }
  Batch rows = tokens.batch();
  rows.set_ragged(batch::kLogProbs, log_probs);
  rows.set_ragged(batch::kWeightsVersion, versions);
  rows.set(batch::kFinish, finishes);
  rows.set(batch::kPromptTokens, prompt_tokens);
  if (routed > 0) add_routed_experts(completions, routed, rows);
  return rows;
}

Completion begun_sample(const Batch& rows, int64_t row) {
  const int64_t prompt = rows.get(batch::kPromptTokens, row);
  const auto ids = rows.row(batch::kIds, row);
  const auto log_probs = rows.row(batch::kLogProbs, row);
  const auto versions = rows.row(batch::kWeightsVersion, row);
  return {.uid = rows.get(batch::kUid, row),
          .prompt = {ids.begin(), ids.begin() + prompt},
          .tokens = {ids.begin() + prompt, ids.end()},
          .log_probs = {log_probs.begin() + prompt, log_probs.end()},
          .versions = {versions.begin() + prompt, versions.end()},
          .finish = rows.get(batch::kFinish, row)};
}

}  // namespace collimate::rlhf
