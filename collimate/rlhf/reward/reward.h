#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::rlhf {

// One sample, as a reward sees it.
struct RewardSample {
  int64_t uid = 0;
  std::string prompt;
  std::string completion;
  nlohmann::json example;            // the data set's row: ground truth and any other columns
  bool finished = true;              // the model or a stop text ended it; it was not cut off, as at the longest length
  nlohmann::json episode = nullptr;  // of a sample that was drawn in turns with an environment (types/episode.h)
};

// The part that one step of a completion has in its reward (process supervision).
struct StepReward {
  size_t end = 0;  // bytes of the completion up to the end of the step; ascending over the steps
  double value = 0;
};

// A sample's reward, or why it failed. Without either the reward did not judge the sample and adds nothing to its sum.
struct RewardResult {
  std::optional<double> value;
  std::string error;              // empty beside a value
  std::vector<StepReward> steps;  // shares of the value, by step; the rest of it belongs to the completion's end
  std::optional<std::string> answer = std::nullopt;  // the completion's answer, if the reward reads it out
  std::string note = "";                             // what else came of a trial, behind the value: " and ends"
};

// Says whether an error is that a function or a server gave another number of rewards than it was asked for, which is
// no single sample's fault.
bool is_wrong_count(const std::string& error);

// A source of rewards. Calls block. A sample's failure is a result with an error, never an exception and never a zero.
class Reward {
 public:
  virtual ~Reward() = default;
  virtual std::vector<RewardResult> score(const std::vector<RewardSample>& samples) = 0;
  // Returns true for a quick function of the sample alone, without effects: it may be asked about rows before a run.
  virtual bool pure() const { return false; }
  // Returns true if a user's function gets several samples and returns a list, whose length may be wrong.
  virtual bool judges_together() const { return false; }
  // Throws InputError for a row of the data with a column that cannot be passed to the reward, as score() does.
  virtual void check_columns(const nlohmann::json& /*example*/) const {}
  // Sets a function that is called, on the thread that calls `score`, while a long `score` goes on: a run ends if
  // nothing reports progress for run.deadline_seconds.
  void on_progress(std::function<void()> told) { told_ = std::move(told); }
  // Sets a function, for trials, that gets the traceback and the sample when a user's function raises; nothing is then
  // logged.
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

// Says what happens to a sample whose reward failed, or that no reward of the list judged.
struct OnError {
  enum class Action { kDrop, kStop, kValue };
  Action action = Action::kStop;
  double value = 0.0;  // for kValue
  // Parses "drop", "stop" or a finite number. Throws InputError otherwise.
  static OnError parse(const nlohmann::json& json);
};

struct RewardSpec {
  std::string name;  // in metrics and messages; unique in its list
  double weight = 1.0;
  OnError on_error;
  std::unique_ptr<Reward> reward;
};

// Returns false when the same sample may get another reward next time (from a judge, a random draw); the run then keeps
// the results in its journal. The entry's key `deterministic`, false by default, says so; a rule has no such key and is
// always deterministic. Throws InputError for an entry of no known form, and when the key is no bool.
bool deterministic_reward(const nlohmann::json& entry);

// Returns a config's `reward:` list with the default of every option that its entries leave out, so that later changes
// of defaults do not change its rewards. A single entry becomes a list. A C++ function's own options stay as they are.
// Throws InputError, naming the place, for an entry of no known form, an unknown rule or key and a wrong value; `path`
// is the key that holds the list.
nlohmann::json resolved_rewards(const base::ConfigNode& list, const std::string& path);

// Returns the keys of entries that say where, how and with which rights a reward runs, not which rewards it gives. The
// hash of a config leaves them out (base::outside_hash).
std::vector<std::string> reward_rights();
// Returns a resolved list without these keys, as the hash of a config reads it.
nlohmann::json hashed_rewards(const nlohmann::json& list);

// Builds the rewards of a config's `reward:` list, whose entries have one of the forms of reward_kinds.h, each with
// `weight`, `on_error` and its own options. A reward is called by its rule or function, and of a server http or judge;
// where names repeat, Python functions are called FILE.function, and names that still repeat get _2, _3, … in the order
// of the list. Throws InputError for an unknown name, naming the known ones, for unknown keys and for an empty list.
std::vector<RewardSpec> make_rewards(const nlohmann::json& list);

// The mean of one reward over the samples that it judged.
struct RewardMean {
  std::string reward;
  double value = 0;
  int64_t samples = 0;  // at least 1
};

// The weighted sums of several rewards over samples. A sample that no reward judged is a failure too, under the
// strictest on_error of the list: stop, then drop, then the lowest weighted value.
struct ScoredSamples {
  std::vector<float> rewards;                       // [samples] weighted sum, 0 if dropped
  std::vector<bool> kept;                           // [samples] false if on_error drops the sample
  std::vector<std::vector<float>> parts;            // [samples][rewards] without weights, NaN where one did not judge
  std::vector<std::vector<StepReward>> steps;       // [samples] weighted, ascending, of all rewards together
  std::vector<RewardMean> means;                    // of each reward that judged a sample
  std::vector<std::optional<std::string>> answers;  // [samples] from the first reward of the list that read one out
  int64_t errors = 0;                               // failures
  std::string first_error;                          // "[reward NAME] …"
  std::string first_effect;                         // effect of on_error on that sample: "dropped" or "given -1"
};
// Scores the samples by all rewards. Throws RunError with the first failure whose on_error says stop, and when
// on_error's value takes a sample's sum beyond the range of float.
ScoredSamples score_samples(const std::vector<RewardSpec>& rewards, const std::vector<RewardSample>& samples);

}  // namespace collimate::rlhf
