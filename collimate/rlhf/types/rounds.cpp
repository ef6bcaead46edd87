#include "collimate/rlhf/types/rounds.h"

#include <algorithm>
#include <map>
#include <set>

#include "collimate/batch/standard_keys.h"

namespace collimate::rlhf {
namespace {

struct PromptCounts {
  int64_t samples = 0;
  int64_t finished = 0;
  int64_t fresh = 0;  // finished and not trained before
};

bool is_finished(const Batch& rows, int64_t r) { return rows.get(batch::kFinish, r) != kUnfinished; }
bool is_trained(const Batch& rows, int64_t r) { return rows.get(kTrainedBefore, r) != 0; }

std::map<int64_t, PromptCounts> counts_by_prompt(const Batch& rows) {
  std::map<int64_t, PromptCounts> counts;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    PromptCounts& of = counts[rows.get(batch::kPromptUid, r)];
    ++of.samples;
    if (!is_finished(rows, r)) continue;
    ++of.finished;
    if (!is_trained(rows, r)) ++of.fresh;
  }
  return counts;
}

}  // namespace

int64_t prompts_begun(const Batch& rows) {
  std::set<int64_t> begun;
  for (int64_t r = 0; r < rows.rows(); ++r)
    if (rows.get(kRound, r) == 0) begun.insert(rows.get(batch::kPromptUid, r));
  return std::ssize(begun);
}

int64_t limit_of_round(std::span<const int64_t> limits, int64_t round) {
  return limits[static_cast<size_t>(std::min<int64_t>(round, std::ssize(limits) - 1))];
}

nlohmann::json sampling_of_round(nlohmann::json sampling, int64_t limit) {
  const int64_t most = std::min(limit, sampling.at("max_tokens").get<int64_t>());
  sampling["max_tokens"] = most;
  if (sampling.contains("min_tokens")) sampling["min_tokens"] = std::min(most, sampling["min_tokens"].get<int64_t>());
  return sampling;
}

Parted part_rows(const Batch& rows, int64_t min_samples) {
  const std::map<int64_t, PromptCounts> counts = counts_by_prompt(rows);
  Parted parted;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const PromptCounts& of = counts.at(rows.get(batch::kPromptUid, r));
    const bool enough = of.finished >= (min_samples > 0 ? min_samples : of.samples) && of.fresh > 0;
    if (enough && is_finished(rows, r)) parted.given.push_back(r);
    if (of.finished < of.samples) parted.carried.push_back(r);
  }
  return parted;
}

Batch next_round(const Batch& rows, const Parted& parted) {
  std::vector<int32_t> rounds;
  std::vector<uint8_t> trained;
  for (const int64_t r : parted.carried) {
    const bool given = std::ranges::binary_search(parted.given, r);
    rounds.push_back(rows.get(kRound, r) + 1);
    trained.push_back(given || is_trained(rows, r) ? 1 : 0);
  }
  Batch out = rows.gather(parted.carried);
  out.set(kRound, rounds);
  out.set(kTrainedBefore, trained);
  return out;
}

Batch first_round(const Batch& prompts) {
  const auto count = static_cast<size_t>(prompts.rows());
  std::vector<std::vector<float>> log_probs;
  std::vector<std::vector<int64_t>> versions;
  for (int64_t r = 0; r < prompts.rows(); ++r) {
    const auto tokens = static_cast<size_t>(prompts.length(batch::kIds.name, r));
    log_probs.emplace_back(tokens, 0.F);
    versions.emplace_back(tokens, 0);
  }
  Batch out = prompts;
  out.set_ragged(batch::kLogProbs, log_probs);
  out.set_ragged(batch::kWeightsVersion, versions);
  out.set(batch::kFinish, std::vector<int32_t>(count, kUnfinished));
  out.set(kRound, std::vector<int32_t>(count, 0));
  out.set(kTrainedBefore, std::vector<uint8_t>(count, 0));
  return out;
}

}  // namespace collimate::rlhf
