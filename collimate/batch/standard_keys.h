#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collimate/batch/key.h"

// The columns that every part of the system agrees on. Per-token columns are aligned with `ids`: entry t speaks of
// token ids[t]; a log-prob at t is log p(ids[t] | ids[<t]) and 0 where nothing was predicted.
namespace collimate::batch {

// Per row. A uid is kept as the int64 with the same bits.
inline const Key<int64_t> kUid{"uid"};
inline const Key<int64_t> kPromptUid{"prompt_uid"};  // samples of one prompt share it: a sample group
inline const Key<int64_t> kPairUid{"pair_uid"};      // a preference pair is two rows: chosen, then rejected
inline const Key<int64_t> kPromptTokens{"prompt_tokens"};
// Position of ids[0] where it is not 0: padding ahead of a row counts where a model was trained so.
inline const Key<int64_t> kFirstPosition{"first_position"};
inline const Key<int32_t> kFinish{"finish"};  // generate::Finish
inline const Key<float> kReward{"reward"};
inline const Key<float> kScore{"score"};
inline const Key<nlohmann::json> kExample{"example"};    // ground truth and any other columns of the data set
inline const Key<nlohmann::json> kSampling{"sampling"};  // sampling parameters of the row

// Per token of prompt + completion. L is the row's number of tokens.
inline const Key<int32_t> kIds{.name = "ids", .ragged = true};              // [L]
inline const Key<uint8_t> kTrainable{.name = "trainable", .ragged = true};  // [L] 1 where the loss looks
inline const Key<float> kLogProbs{.name = "log_probs", .ragged = true};     // [L] as sampled
inline const Key<float> kOldLogProbs{.name = "old_log_probs", .ragged = true};
inline const Key<float> kReferenceLogProbs{.name = "reference_log_probs", .ragged = true};
// A completion's steps (process supervision), one where its reward names none.
inline const Key<int32_t> kStep{.name = "step", .ragged = true};  // [L] number of t's step, -1 in the prompt
inline const Key<float> kStepRewards{.name = "step_rewards", .ragged = true};  // [L] of the reward, where a step ends
inline const Key<float> kValues{.name = "values", .ragged = true};             // [L] V(state before token t)
inline const Key<float> kAdvantages{.name = "advantages", .ragged = true};     // [L]
inline const Key<float> kReturns{.name = "returns", .ragged = true};           // [L]
inline const Key<int64_t> kWeightsVersion{.name = "weights_version", .ragged = true};  // [L] version that sampled t
// [L, routers, K] the experts that each router of a mixture chose for the token when its keys and values were computed,
// ascending; -1 for a token that was never run, as the last one. See routed_experts().
inline const Key<int16_t> kRoutedExperts{.name = "routed_experts", .ragged = true};
// Gives the key of rows that have so many numbers a token.
inline Key<int16_t> routed_experts(int64_t width) {
  Key<int16_t> key = kRoutedExperts;
  key.inner = {width};
  return key;
}

// Uid of a sample: the same coordinates always give the same uid.
int64_t make_uid(std::string_view purpose, std::string_view dataset, int64_t row, int64_t epoch, int64_t repeat,
                 int64_t attempt);

}  // namespace collimate::batch
