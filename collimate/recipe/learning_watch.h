#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/metrics.h"

namespace collimate::recipe {

// Looks in a run's metrics, under verl's names, for signs that it cannot learn: for ten iterations in a row all rewards
// equal, nearly all prompts solved, every completion cut, no gradient, more than a nat a token away from the reference;
// or a loss (of a recipe without rewards, or of a value model) that is half as large again as at first. Says each once
// a run, and at its end whether a loss has stayed so. Plain data.
class LearningWatch {
 public:
  // Gives the warnings that this iteration's line is the first to cause.
  std::vector<std::string> add(const base::MetricsRecord& record);
  // These have been said so far.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Says how a loss has diverged by now: its last values lie half as high again as the first one, by more than twice
  // their spread. They are ten, or the second half of a run of fewer than 20 iterations. "" where none has.
  std::string diverged() const;

  COLLIMATE_MEMBERS(running, losses, diverged, warnings)

 private:
  struct Loss;
  static const Loss kLosses[];

  void look_at(const Loss& loss, const base::MetricsRecord& record);
  void say(const std::string& sign, std::string text);

  std::map<std::string, int64_t> running_;            // iterations in a row, by sign; kSaid once it was said
  std::map<std::string, std::deque<double>> losses_;  // by metric: the first, then the last ten
  std::map<std::string, std::string> diverged_;       // by metric: how the loss has risen, "" if it has not
  std::vector<std::string> warnings_;
};

}  // namespace collimate::recipe
