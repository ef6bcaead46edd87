#include "collimate/recipe/evaluation/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "collimate/base/error.h"

namespace collimate::recipe {
namespace {

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double value_of(const Measure& measure) {
  const double ratio = total(measure.sums) / total(measure.weights);
  return measure.exponential ? std::exp(ratio) : ratio;
}

// Returns how much the value moves with each unit; these numbers sum to 0.
std::vector<double> influences(const Measure& measure) {
  const double weight = total(measure.weights), ratio = total(measure.sums) / weight;
  const double slope = (measure.exponential ? std::exp(ratio) : 1.0) / weight;
  std::vector<double> out;
  for (size_t i = 0; i < measure.sums.size(); ++i)
    out.push_back(slope * (measure.sums[i] - ratio * measure.weights[i]));
  return out;
}

double standard_error(const std::vector<double>& influences) {
  const auto n = static_cast<double>(influences.size());
  if (n < 2) return std::numeric_limits<double>::quiet_NaN();
  double squares = 0;
  for (const double one : influences) squares += one * one;
  return std::sqrt(squares * n / (n - 1));
}

Measure of_units(const Measure& measure, const std::map<int64_t, size_t>& wanted) {
  Measure out{.name = measure.name, .exponential = measure.exponential};
  for (size_t i = 0; i < measure.units.size(); ++i)
    if (wanted.contains(measure.units[i])) out.add(measure.units[i], measure.sums[i], measure.weights[i]);
  return out;
}

std::map<int64_t, size_t> places(const Measure& measure) {
  std::map<int64_t, size_t> out;
  for (size_t i = 0; i < measure.units.size(); ++i) out[measure.units[i]] = i;
  return out;
}

// Returns the powers of two from 2 on that are below n, and n.
std::vector<int64_t> sizes_up_to(int64_t n) {
  std::vector<int64_t> sizes;
  for (int64_t k = 2; k < n; k *= 2) sizes.push_back(k);
  sizes.push_back(n);
  return sizes;
}

int64_t right_of(const GradedPrompt& prompt) {
  return std::ranges::count_if(prompt.samples, [](const GradedSample& s) { return s.reward >= kRightReward; });
}

}  // namespace

void Measure::add(int64_t unit, double sum, double weight) {
  units.push_back(unit);
  sums.push_back(sum);
  weights.push_back(weight);
}

Estimate estimate(const Measure& measure) {
  return {value_of(measure), standard_error(influences(measure)), static_cast<int64_t>(measure.units.size())};
}

Estimate paired_difference(const Measure& first, const Measure& second) {
  const Measure a = of_units(first, places(second)), b = of_units(second, places(a));
  const std::map<int64_t, size_t> in_a = places(a);
  const std::vector<double> of_a = influences(a);
  std::vector<double> moves = influences(b);
  for (size_t i = 0; i < moves.size(); ++i) moves[i] -= of_a[in_a.at(b.units[i])];
  return {value_of(b) - value_of(a), standard_error(moves), static_cast<int64_t>(moves.size())};
}

double pass_at(int64_t n, int64_t right, int64_t k) {
  COLLIMATE_CHECK(1 <= k && k <= n && 0 <= right && right <= n, "pass@{} of {} samples, {} right", k, n, right);
  double none = 1;
  for (int64_t i = n - right + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return n - right < k ? 1 : 1 - none;
}

double majority_reward(const std::vector<GradedSample>& samples) {
  struct Votes {
    double count = 0, reward = 0;
  };
  std::map<int64_t, Votes> votes;
  for (const GradedSample& sample : samples) {
    votes[sample.answer].count += 1;
    votes[sample.answer].reward += sample.reward;
  }
  double most = 0, reward = 0, answers = 0;
  for (const auto& [answer, of] : votes) most = std::max(most, of.count);
  for (const auto& [answer, of] : votes) {
    if (of.count != most) continue;
    reward += of.reward / of.count;
    answers += 1;
  }
  return reward / answers;
}

std::vector<Measure> sample_measures(const std::vector<GradedPrompt>& prompts, int64_t n, bool graded) {
  Measure mean{fmt::format("mean@{}", n)}, best{fmt::format("best@{}", n)}, majority{fmt::format("maj@{}", n)};
  std::vector<Measure> pass;
  const std::vector<int64_t> sizes = sizes_up_to(n);
  for (const int64_t k : sizes) pass.push_back({fmt::format("pass@{}", k)});
  for (const GradedPrompt& prompt : prompts) {
    if (static_cast<int64_t>(prompt.samples.size()) != n) continue;
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    for (const GradedSample& sample : prompt.samples) {
      sum += sample.reward;
      largest = std::max(largest, sample.reward);
    }
    mean.add(prompt.uid, sum / static_cast<double>(n));
    best.add(prompt.uid, largest);
    majority.add(prompt.uid, majority_reward(prompt.samples));
    for (size_t i = 0; i < sizes.size(); ++i) pass[i].add(prompt.uid, pass_at(n, right_of(prompt), sizes[i]));
  }
  std::vector<Measure> out = {std::move(mean), std::move(best)};
  if (!graded) return out;
  out.insert(out.end(), pass.begin(), pass.end());
  out.push_back(std::move(majority));
  return out;
}

std::vector<Measure> marked_measures(const std::vector<MarkedNumber>& answers, const std::string& accuracy,
                                     const std::string& margin) {
  std::vector<double> others;
  for (const MarkedNumber& answer : answers)
    if (!answer.desirable) others.push_back(answer.number);
  if (others.empty() || others.size() == answers.size())
    throw base::InputError(base::expectation("evaluation", "held-out answers of both marks",
                                             others.empty() ? "desirable ones alone" : "undesirable ones alone",
                                             "rows with label: true and with label: false"));
  const auto count = static_cast<double>(others.size());
  const double mean = total(others) / count;
  std::vector<Measure> measures = {Measure{accuracy}, Measure{margin}};
  for (const MarkedNumber& answer : answers) {
    if (!answer.desirable) continue;
    double won = 0;
    for (const double other : others) won += answer.number > other ? 1 : answer.number == other ? 0.5 : 0;
    measures[0].add(answer.uid, won / count);
    measures[1].add(answer.uid, answer.number - mean);
  }
  return measures;
}

}  // namespace collimate::recipe
