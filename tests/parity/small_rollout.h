#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/rollout/assemble.h"
#include "tests/parity/small_learner.h"

// A rollout small enough to be repeated with many faults: some samples of three prompts, as a run's rows.
namespace collimate::test {

constexpr int64_t kRolloutSamples = 4;  // of each prompt
constexpr int64_t kRolloutTokens = 8;   // drawn for each sample
inline const std::vector<std::vector<int32_t>> kRolloutPrompts = {{5, 3, 4, 12}, {2, 9, 8, 12}, {7, 7, 1, 12}};

inline Batch rollout_requests() {
  std::vector<int64_t> uids(kRolloutPrompts.size() * kRolloutSamples), prompt_uids;
  std::iota(uids.begin(), uids.end(), 0);
  std::vector<std::vector<int32_t>> ids;
  for (const int64_t uid : uids) {
    prompt_uids.push_back(uid / kRolloutSamples);
    ids.push_back(base::at(kRolloutPrompts, uid / kRolloutSamples));
  }
  Batch rows;
  rows.set(batch::kUid, uids);
  rows.set(batch::kPromptUid, prompt_uids);
  rows.set_ragged(batch::kIds, ids);
  return rows;
}

inline generate::ServiceOptions rollout_options(const SmallLearner& small) {
  generate::ServiceOptions options;
  options.exec = small.exec;
  options.sampling.max_tokens = kRolloutTokens;
  options.sampling.ignore_eos = true;
  return options;
}

// Whole samples of rollout_requests() as rows to train on.
inline Batch rollout_rows(std::span<const generate::Emission> emissions) {
  std::vector<rlhf::Completion> completions;
  for (const generate::Emission& e : emissions)
    completions.push_back({.uid = e.uid,
                           .prompt = base::at(kRolloutPrompts, e.uid / kRolloutSamples),
                           .tokens = e.tokens,
                           .log_probs = e.log_probs,
                           .versions = e.versions,
                           .finish = static_cast<int32_t>(e.finish)});
  return rlhf::completion_rows(completions);
}

}  // namespace collimate::test
