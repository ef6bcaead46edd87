#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::recipe {

// A run's trial asks rules about so many rows of a data set, `check` about these.
constexpr int64_t kTriedRows = 100;
constexpr int64_t kCheckedRows = 20000;

struct RewardFindings {
  std::vector<std::string> lines, problems;
  std::set<std::string> failed;     // rewards with errors that are among the problems
  std::vector<std::string> raised;  // where functions of the user raised: tracebacks, each with its sample
};

// Builds the rewards of the plan's models, calls each on a few completions of the first row and shows what they get,
// and asks those that are functions of one sample (rules, C++) about the first `rows` rows of `data` as if the ground
// truth had been the completion. What a function raises is in `raised` once, on whatever rows. A row on which such a
// reward fails is a problem when on_error stops the run, or when all rows fail; otherwise a line. A problem names the
// data's columns. Without data the rewards are built alone.
RewardFindings check_rewards(const Plan& plan, const RunData& data, int64_t rows);

// InputError with the problems, if there are any, after the tracebacks have been logged.
void refuse_rewards(const RewardFindings& found);

// Rows as rewards see them, each with the ground truth's text, as rules read it, as completion.
struct TruthRows {
  std::vector<rlhf::RewardSample> samples;
  std::vector<std::string> places;  // "test.jsonl:12"

  void add(const std::string& place, std::string prompt, const nlohmann::json& example);
};

// This is the trial outside of a run: of rewards, or a config's list of them. InputError, which names the data `key` or
// the row, where they cannot judge; warns of completions on which one fails.
void require_rewards(const std::string& key, const std::vector<rlhf::RewardSpec>& specs, const TruthRows& truths);
void require_rewards(const std::string& key, const nlohmann::json& list, const TruthRows& truths);

}  // namespace collimate::recipe
