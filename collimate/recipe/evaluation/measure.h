#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Measures are what evaluations say, in a run and outside of one: pure functions of numbers.
namespace collimate::recipe {

// Holds one number of an evaluation, by the units that it is an average over: prompts, rows or pairs. Its value is the
// sum of `sums` over that of `weights`, e.g. log-probs over tokens; or e to that power where it is `exponential`.
struct Measure {
  std::string name;                  // "pass@4"
  std::vector<int64_t> units = {};   // uid of each, equal for the same row of the data under every model
  std::vector<double> sums = {};     // [units]
  std::vector<double> weights = {};  // [units]
  bool exponential = false;

  void add(int64_t unit, double sum, double weight = 1.0);
};

struct Estimate {
  double value = 0;
  double standard_error = 0;  // NaN for a single unit
  int64_t units = 0;
};

// Returns the value, and its standard error where units are independent draws: s / sqrt(n) of a mean, and the error of
// its linearisation for a ratio (Cochran 1977, 2.9). Both are NaN without units.
Estimate estimate(const Measure& measure);

// Returns `second` less `first` over the units that both have, with the standard error of paired units, in which the
// difficulty that a unit has for both models cancels.
Estimate paired_difference(const Measure& first, const Measure& second);

// Holds one answer that is marked desirable or not, and what it scores.
struct MarkedNumber {
  int64_t uid = 0;
  double number = 0;
  bool desirable = false;
};

// Returns two measures whose units are the desirable answers. `accuracy` is the share of the undesirable ones that
// score lower, ties counting half (its mean is the area under the ROC curve). `margin` is by how much the answer
// exceeds their mean. Throws InputError where no answer, or every one, is desirable.
std::vector<Measure> marked_measures(const std::vector<MarkedNumber>& answers, const std::string& accuracy,
                                     const std::string& margin);

// Holds one completion of a prompt, as rewards judged it.
struct GradedSample {
  double reward = 0;
  int64_t answer = 0;  // equal where a reward reads the same answer out of two completions, whose texts may differ
};
struct GradedPrompt {
  int64_t uid = 0;
  std::vector<GradedSample> samples;
};

// A sample with at least this reward is right.
constexpr double kRightReward = 1.0;

// Returns the probability that at least one of k samples is right, drawn without replacement from n of which `right`
// are: the unbiased estimate 1 - C(n - right, k) / C(n, k) (Chen et al. 2021, arXiv 2107.03374). 1 <= k <= n.
double pass_at(int64_t n, int64_t right, int64_t k);

// Returns the mean reward of the samples that give the most frequent answer. Where several answers are equally frequent
// it returns the mean over them, which a vote that draws among them gives on average. Needs at least one sample.
double majority_reward(const std::vector<GradedSample>& samples);

// Returns the measures of several samples of each prompt: mean@n, best@n (the largest reward) and, where `graded` by
// rewards of which kRightReward means right, pass@k for k = 2, 4, 8, … and n, and maj@n. A prompt with fewer than n
// samples, because some failed, is left out.
std::vector<Measure> sample_measures(const std::vector<GradedPrompt>& prompts, int64_t n, bool graded);

}  // namespace collimate::recipe
