#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::rlhf {

// One sample as a reward sees it.
struct RewardSample {
  int64_t uid = 0;
  std::string prompt;
  std::string completion;
  nlohmann::json example;  // the data set's row: ground truth and any other columns
  bool finished = true;    // the model ended it itself: not cut off at the longest length
};

// One step of a completion adds this to its reward (process supervision).
struct StepReward {
  size_t end = 0;  // bytes of the completion up to the end of the step; ascending over the steps
  double value = 0;
};

// A reward, or why it failed, or neither: the reward is not about this sample and adds nothing to its sum.
struct RewardResult {
  std::optional<double> value;
  std::string error;              // empty beside a value
  std::vector<StepReward> steps;  // of the value, by step; what they leave of it belongs to the completion's end
  std::optional<std::string> answer = std::nullopt;  // what the completion answers, where the reward reads it out
};

// A source of rewards. Blocking. A sample's failure is a result with an error, never an exception and never a zero.
class Reward {
 public:
  virtual ~Reward() = default;
  virtual std::vector<RewardResult> score(const std::vector<RewardSample>& samples) = 0;
  // True for a quick function of the sample alone, without effects: it may be asked about rows before a run.
  virtual bool pure() const { return false; }
  // True where a function of the user's is given several samples and answers with a list, whose length may be wrong.
  virtual bool judges_together() const { return false; }
  // InputError for a row of the data with a column that the reward cannot be given; so does score().
  virtual void check_columns(const nlohmann::json& /*example*/) const {}
  // Who is told, on the thread that asks, that a long `score` goes on: what does not say so for run.deadline_seconds
  // ends the run.
  void on_progress(std::function<void()> told) { told_ = std::move(told); }
  // Who is told, in the place of the log, where a user's function raised: its traceback and the sample. Of a trial.
  using Raised = std::function<void(const std::string& text)>;
  void on_raise(Raised told) { raised_ = std::move(told); }

 protected:
  const Raised& told_of_raise() const { return raised_; }  // may be empty
  // `score` calls this after each part of its work. It is cheap.
  void progress() const {
    if (told_) told_();
  }

 private:
  std::function<void()> told_;
  Raised raised_;
};

// This happens to a sample whose reward failed, or that no reward of the list judged.
struct OnError {
  enum class Action { kDrop, kStop, kValue };
  Action action = Action::kStop;
  double value = 0.0;  // for kValue
  // "drop", "stop" or a finite number. InputError otherwise.
  static OnError parse(const nlohmann::json& json);
};

struct RewardSpec {
  std::string name;  // in metrics and messages; unique in its list
  double weight = 1.0;
  OnError on_error;
  std::unique_ptr<Reward> reward;
};

// InputError, for `where`, unless `entry` has the form of an entry of a config's `reward:` list. Names and options stay
// unchecked.
void check_reward(const nlohmann::json& entry, const std::string& where = "reward");

// False when the same sample may get another reward next time (a judge, a random draw): its results are journaled. By
// the entry's key `deterministic`, which rules, always true, do not have; default false. InputError as
// check_reward.
bool deterministic_reward(const nlohmann::json& entry);

// A config's `reward:` list with every option that its entries leave out, at its default: what is made of it stays the
// same when a default changes. An entry alone is the list of it. Options of a C++ function's own stay as they are.
// InputError, naming the place of what is wrong, for an entry of no known form, an unknown rule or key and a wrong
// value; `path` is the key that holds the list.
nlohmann::json resolved_rewards(const base::ConfigNode& list, const std::string& path);

// Names the keys of an entry that say where and with which rights it runs, not what it gives: those that are outside of
// the hash (base::outside_hash).
std::vector<std::string> reward_rights();
// A resolved list without these keys: what the hash of a config reads of it.
nlohmann::json hashed_rewards(const nlohmann::json& list);

// Builds the rewards of a config's `reward:` list: {rule: NAME, …}, {function: NAME, …} (C++, see functions.h) or
// {python: FILE.py[:function], …}, each with `weight` and `on_error` and options of its own. A reward's name is that of
// its rule or function; where it repeats, a Python function's is FILE.function, and what still repeats ends in _2, _3,
// … in the order of the list. InputError for an unknown name, naming the known ones, and for unknown keys.
std::vector<RewardSpec> make_rewards(const nlohmann::json& list);

// Mean of one reward over the samples that it judged.
struct RewardMean {
  std::string reward;
  double value = 0;
  int64_t samples = 0;  // at least 1
};

// Weighted sum over several rewards; the count of their failures; `kept[i]` false where on_error drops the sample. One
// that every reward left unjudged is a failure too, under the strictest on_error of the list: stop, drop, the lowest
// weighted value.
struct ScoredSamples {
  std::vector<float> rewards;                       // [samples], 0 where dropped
  std::vector<bool> kept;                           // [samples]
  std::vector<std::vector<float>> parts;            // [samples][rewards] without weights, NaN where one did not judge
  std::vector<std::vector<StepReward>> steps;       // [samples] weighted, ascending; of several rewards together
  std::vector<RewardMean> means;                    // by reward
  std::vector<std::optional<std::string>> answers;  // [samples] by the first reward of the list that read one out
  int64_t errors = 0;
  std::string first_error;   // "[reward NAME] sample UID: …"
  std::string first_effect;  // of on_error on that sample: "dropped" or "given -1"
};
// RunError with the first failure when its on_error says stop.
ScoredSamples score_samples(const std::vector<RewardSpec>& rewards, const std::vector<RewardSample>& samples);

}  // namespace collimate::rlhf
