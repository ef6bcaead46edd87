#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collimate/batch/key.h"

// Every part of the system agrees on these columns. Per-token columns are aligned with `ids`: entry t belongs to token
// ids[t]; a log-prob at t is log p(ids[t] | ids[<t]) and 0 where nothing was predicted.
namespace collimate::batch {

// These columns have one number per row. A uid, which is unsigned, is kept as the int64 with the same bits.
inline const Key<int64_t> kUid{"uid"};
inline const Key<int64_t> kPromptUid{"prompt_uid"};  // samples of one prompt share it: a sample group
inline const Key<int64_t> kPairUid{"pair_uid"};      // a preference pair is two rows: chosen, then rejected
inline const Key<int64_t> kPromptTokens{"prompt_tokens"};
// This is the position of ids[0] where it is not 0: in some models padding ahead of a row takes up positions.
inline const Key<int64_t> kFirstPosition{"first_position"};
inline const Key<int32_t> kFinish{"finish"};  // generate::Finish
inline const Key<float> kReward{"reward"};
inline const Key<float> kScore{"score"};
inline const Key<nlohmann::json> kExample{"example"};    // ground truth and any other columns of the data set
inline const Key<nlohmann::json> kSampling{"sampling"};  // sampling parameters of the row

// These columns have one entry per token of prompt and completion. L is the row's number of tokens.
inline const Key<int32_t> kIds{.name = "ids", .ragged = true};              // [L]
inline const Key<uint8_t> kTrainable{.name = "trainable", .ragged = true};  // [L] 1 where the loss reads the token
inline const Key<float> kLogProbs{.name = "log_probs", .ragged = true};     // [L] as generation reported them
inline const Key<float> kOldLogProbs{.name = "old_log_probs", .ragged = true};
inline const Key<float> kReferenceLogProbs{.name = "reference_log_probs", .ragged = true};
// A completion is divided into steps for process supervision; it is one step where its reward names none.
inline const Key<int32_t> kStep{.name = "step", .ragged = true};  // [L] number of t's step, -1 in the prompt
inline const Key<float> kStepRewards{.name = "step_rewards", .ragged = true};  // [L] a step's reward at its last token
inline const Key<float> kValues{.name = "values", .ragged = true};             // [L] V(state before token t)
inline const Key<float> kAdvantages{.name = "advantages", .ragged = true};     // [L]
inline const Key<float> kReturns{.name = "returns", .ragged = true};           // [L]
inline const Key<int64_t> kWeightsVersion{.name = "weights_version", .ragged = true};  // [L] version that sampled t
// [L, routers, K]: the K experts that each router of a mixture chose for the token when its keys and values were
// computed, ascending; -1 for a token that the model never read, such as the last one. See routed_experts().
inline const Key<int16_t> kRoutedExperts{.name = "routed_experts", .ragged = true};
// Returns kRoutedExperts for rows that have `width` (routers times K) numbers per token.
inline Key<int16_t> routed_experts(int64_t width) {
  Key<int16_t> key = kRoutedExperts;
  key.inner = {width};
  return key;
}

// Returns the uid of a sample, a hash of all arguments: equal arguments always give the same uid.
int64_t make_uid(std::string_view purpose, std::string_view dataset, int64_t row, int64_t epoch, int64_t repeat,
                 int64_t attempt);

}  // namespace collimate::batch
