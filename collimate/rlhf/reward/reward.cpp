#include "collimate/rlhf/reward/reward.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward_kinds.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {

using base::expectation;
using base::InputError;

OnError OnError::parse(const nlohmann::json& json) {
  if (json == "drop") return {Action::kDrop};
  if (json == "stop") return {Action::kStop};
  if (json.is_number() && std::isfinite(json.get<double>())) return {Action::kValue, json.get<double>()};
  throw InputError(expectation("reward.on_error", "drop, stop or a finite number", json.dump()));
}

namespace {

class FunctionReward final : public Reward {
 public:
  FunctionReward(Rule rule, bool pure) : rule_(std::move(rule)), pure_(pure) {}

  bool pure() const override { return pure_; }

  std::vector<RewardResult> score(const std::vector<RewardSample>& samples) override {
    std::vector<RewardResult> results;
    for (const RewardSample& sample : samples) {
      try {
        Score score = rule_(sample);
        results.push_back({score.value, "", std::move(score.steps), std::move(score.answer)});
      } catch (const std::exception& error) {
        results.push_back({std::nullopt, error.what()});
      }
      progress();
    }
    return results;
  }

 private:
  Rule rule_;
  bool pure_;
};

// Returns a Python function's name with that of its file, which tells it from functions in other files. Other names
// stay.
std::string name_with_file(const nlohmann::json& entry, const std::string& name) {
  const std::filesystem::path file = reward_file(entry);
  return file.empty() ? name : file.stem().string() + "." + name;
}

// Changes repeated names as make_rewards says; the others stay.
void make_names_unique(const nlohmann::json& entries, std::vector<RewardSpec>& specs) {
  std::map<std::string, int> uses;
  for (const RewardSpec& spec : specs) ++uses[spec.name];
  std::set<std::string> taken;
  for (const auto& [name, times] : uses)
    if (times == 1) taken.insert(name);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (uses.at(specs[i].name) == 1) continue;
    const std::string name = name_with_file(entries.at(i), specs[i].name);
    specs[i].name = name;
    for (int number = 2; !taken.insert(specs[i].name).second; ++number)
      specs[i].name = fmt::format("{}_{}", name, number);
  }
}

std::string steps_failure(const std::vector<StepReward>& steps, size_t size) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].value)) return fmt::format("reward of step {} is {}", i, steps[i].value);
    if (i > 0 && steps[i].end <= steps[i - 1].end)
      return fmt::format("step {} ends at byte {}, expected behind {}, where the one before it ends", i, steps[i].end,
                         steps[i - 1].end);
    if (steps[i].end > size) return fmt::format("step {} ends at byte {}, expected at most {}", i, steps[i].end, size);
  }
  return "";
}

// Returns why a result is no valid reward, or "".
std::string failure(const RewardResult& result, const RewardSample& sample) {
  if (!result.value) return result.error;
  if (!std::isfinite(*result.value)) return fmt::format("reward is {}", *result.value);
  return steps_failure(result.steps, sample.completion.size());
}

// Returns why a result, added to the `size` that its sample has so far, leaves the range of float, in which training
// reads rewards, or "".
std::string range_failure(const RewardResult& result, double weight, double size) {
  const auto problem = [&](const std::string& what, double value) -> std::string {
    size += std::abs(weight * value);
    if (size <= std::numeric_limits<float>::max()) return "";
    return fmt::format("{} is {}: at weight {} the sample's sum is beyond the range of float", what, value, weight);
  };
  std::string found = problem("reward", *result.value);
  for (size_t i = 0; found.empty() && i < result.steps.size(); ++i)
    found = problem(fmt::format("reward of step {}", i), result.steps[i].value);
  return found;
}

// Returns the sum of the absolute values that sample i has so far, which no sum of these values exceeds.
double size_of(const ScoredSamples& scored, size_t i) {
  double size = std::abs(scored.rewards[i]);
  for (const StepReward& step : scored.steps[i]) size += std::abs(step.value);
  return size;
}

void add_steps(std::vector<StepReward>& sum, const std::vector<StepReward>& steps, double weight) {
  for (const StepReward& step : steps) {
    const auto place = std::ranges::lower_bound(sum, step.end, {}, &StepReward::end);
    if (place != sum.end() && place->end == step.end) {
      place->value += weight * step.value;
    } else {
      sum.insert(place, {step.end, weight * step.value});
    }
  }
}

std::string effect_of(const OnError& on_error) {
  return on_error.action == OnError::Action::kDrop ? "dropped" : fmt::format("given {}", on_error.value);
}

// Treats sample i as on_error says. Throws RunError if it says stop, or if its value takes the sample's sum beyond the
// range of float.
void fail(const RewardSpec& spec, size_t i, const std::string& problem, ScoredSamples& out) {
  const OnError& on_error = spec.on_error;
  const std::string message = fmt::format("[reward {}] {}", spec.name, problem);
  if (out.errors++ == 0) {
    out.first_error = message;
    out.first_effect = effect_of(on_error);
  }
  if (on_error.action == OnError::Action::kStop) {
    const bool advised = problem.find("; try ") != std::string::npos;
    // on_error would affect all samples of a call that gave a wrong count.
    throw base::RunError(message + (is_wrong_count(problem) ? "; try returning as many numbers as there are completions"
                                    : advised               ? ", or on_error: drop, or a value, for it"
                                              : "; try mending the reward, or on_error: drop, or a value, for it"));
  }
  if (on_error.action == OnError::Action::kDrop) out.kept[i] = false;
  if (std::abs(spec.weight * on_error.value) + size_of(out, i) > std::numeric_limits<float>::max())
    throw base::RunError(message + fmt::format("; on_error's {} at weight {} takes the sample's sum beyond the range "
                                               "of float; try a smaller one",
                                               on_error.value, spec.weight));
  out.rewards[i] += static_cast<float>(spec.weight * on_error.value);
}

// Adds the results of the list's k-th reward to `out`; answered[i] becomes true if the reward judged sample i or
// failed.
void add_reward(const RewardSpec& spec, size_t k, const std::vector<RewardSample>& samples, std::vector<bool>& answered,
                ScoredSamples& out) {
  const std::vector<RewardResult> results = spec.reward->score(samples);
  COLLIMATE_CHECK(results.size() == samples.size(), "reward {} gave {} results", spec.name, results.size());
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const RewardResult& result = results[i];
    if (!result.value && result.error.empty()) continue;
    answered[i] = true;
    if (result.answer && !out.answers[i]) out.answers[i] = result.answer;
    std::string problem = failure(result, samples[i]);
    if (problem.empty()) problem = range_failure(result, spec.weight, size_of(out, i));
    if (!problem.empty()) {
      fail(spec, i, problem, out);
      if (spec.on_error.action == OnError::Action::kValue) out.parts[i][k] = static_cast<float>(spec.on_error.value);
      continue;
    }
    sum += *result.value;
    ++count;
    out.parts[i][k] = static_cast<float>(*result.value);
    add_steps(out.steps[i], result.steps, spec.weight);
    out.rewards[i] += static_cast<float>(spec.weight * *result.value);
  }
  if (count > 0) out.means.push_back({spec.name, sum / static_cast<double>(count), count});
}

// Returns a key that sorts rewards from the strictest on_error on: stop, drop, then values from the lowest on.
std::pair<int, double> leniency(const RewardSpec& spec) {
  const OnError::Action action = spec.on_error.action;
  if (action == OnError::Action::kValue) return {2, spec.weight * spec.on_error.value};
  return {action == OnError::Action::kStop ? 0 : 1, 0.0};
}

}  // namespace

bool is_wrong_count(const std::string& error) {
  const bool told = error.find("the function returned") != std::string::npos ||
                    error.find("the server returned") != std::string::npos;
  return told && error.find(" for ") != std::string::npos;
}

std::unique_ptr<Reward> function_reward(Rule rule, bool pure) {
  return std::make_unique<FunctionReward>(std::move(rule), pure);
}

std::vector<RewardSpec> make_rewards(const nlohmann::json& list) {
  std::vector<RewardSpec> specs;
  const nlohmann::json entries = list.is_array() ? list : nlohmann::json::array({list});
  for (const nlohmann::json& entry : entries) specs.push_back(make_reward(entry));
  make_names_unique(entries, specs);
  if (specs.empty()) throw InputError(expectation("reward", "at least one reward", "none", "reward: [{rule: exact}]"));
  return specs;
}

ScoredSamples score_samples(const std::vector<RewardSpec>& rewards, const std::vector<RewardSample>& samples) {
  COLLIMATE_CHECK(!rewards.empty(), "no rewards for {} samples", samples.size());
  ScoredSamples out;
  out.rewards.assign(samples.size(), 0.F);
  out.kept.assign(samples.size(), true);
  out.steps.resize(samples.size());
  out.answers.resize(samples.size());
  std::vector<bool> answered(samples.size(), false);
  constexpr float kUnjudged = std::numeric_limits<float>::quiet_NaN();
  out.parts.assign(samples.size(), std::vector<float>(rewards.size(), kUnjudged));
  for (size_t k = 0; k < rewards.size(); ++k) add_reward(rewards[k], k, samples, answered, out);
  const RewardSpec& strictest = *std::ranges::min_element(rewards, {}, leniency);
  for (size_t i = 0; i < samples.size(); ++i)
    if (!answered[i]) fail(strictest, i, "no reward judged the sample", out);
  for (size_t i = 0; i < samples.size(); ++i)
    if (!out.kept[i]) out.rewards[i] = 0.F;
  return out;
}

}  // namespace collimate::rlhf
