#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/key.h"

// Samples that are drawn over several iterations, in rounds (rollout.round_shares): their columns and rules. A row that
// goes on has the tokens, log-probs and versions of its sample as far as that has been drawn.
namespace collimate::rlhf {

// Number of iterations before this one in which samples of the prompt were drawn.
inline const batch::Key<int32_t> kRound{"round"};
// The column is 1 for a sample that an earlier iteration trained, and with which others of its prompt are compared.
inline const batch::Key<uint8_t> kTrainedBefore{"trained_before"};
// The finish of a sample that goes on: generate::Finish::kRunning.
constexpr int32_t kUnfinished = 0;

// Returns how many tokens a completion may have after the round, counted from 0. `limits` rise, one for each round.
int64_t limit_of_round(std::span<const int64_t> limits, int64_t round);

// Returns a whole sample's sampling parameters for one that is cut at `limit` tokens.
nlohmann::json sampling_of_round(nlohmann::json sampling, int64_t limit);

// A Parted says what becomes of the rows of whole sample groups after generation, by their indices.
struct Parted {
  // Finished samples that go on to rewards and advantages: those of each prompt that has enough of them, one of which
  // is not trained yet.
  std::vector<int64_t> given;
  // All samples of prompts of which some are not finished.
  std::vector<int64_t> carried;
};

// Divides rows with prompt_uid, finish, round and trained_before. A prompt has enough finished samples with
// `min_samples` of them, or with 0 when all are finished.
Parted part_rows(const Batch& rows, int64_t min_samples);

// Returns how many prompts of the rows begin in this iteration.
int64_t prompts_begun(const Batch& rows);

// Returns the carried rows as the next iteration gets them.
Batch next_round(const Batch& rows, const Parted& parted);

// Returns rows of prompts, of which nothing is drawn yet, with the columns that rows in rounds have.
Batch first_round(const Batch& prompts);

}  // namespace collimate::rlhf
