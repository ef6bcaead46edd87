#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::recipe {

// Rules are asked about at most so many rows of a data set: kTriedRows in the trial before a run, kCheckedRows by
// `check`.
constexpr int64_t kTriedRows = 100;
constexpr int64_t kCheckedRows = 20000;

struct RewardFindings {
  std::vector<std::string> lines, problems;
  std::set<std::string> failed;     // reward name and error of each failure that `problems` has
  std::vector<std::string> raised;  // tracebacks of the user's functions, each with the sample that raised it
};

// Builds the rewards of the plan's models and calls each on a few completions of the data's first row; `lines` shows
// what they get. Rewards that are functions of one sample (rules, C++) are also asked about the first `rows` rows of
// `data`, as if the ground truth had been the completion. An error on one of these rows is a problem when on_error
// stops the run or when no row gets a value; otherwise it is a line. A problem names the data's columns. `raised` has
// each traceback once, on whatever rows a function raised it. Without data the rewards are only built.
RewardFindings check_rewards(const Plan& plan, const RunData& data, int64_t rows);

// Throws InputError with the problems, if there are any, after it has logged the tracebacks.
void refuse_rewards(const RewardFindings& found);

// Holds rows as rewards see them. The completion of each is the text of its ground truth, as rules read it.
struct TruthRows {
  std::vector<rlhf::RewardSample> samples;
  std::vector<std::string> places;  // "test.jsonl:12"

  void add(const std::string& place, std::string prompt, const nlohmann::json& example);
};

// Tries rewards, or a config's list of them, outside of a run. Throws InputError, which names the data by `key` or the
// row, where they cannot judge. Warns of completions on which one fails.
void require_rewards(const std::string& key, const std::vector<rlhf::RewardSpec>& specs, const TruthRows& truths);
void require_rewards(const std::string& key, const nlohmann::json& list, const TruthRows& truths);

}  // namespace collimate::recipe
