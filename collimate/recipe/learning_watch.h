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

// Looks in a run's metrics, under verl's names, for signs that it cannot learn. For ten iterations in a row, all
// rewards are equal, nearly all prompts are solved, rewards fail, every completion is cut, the gradient is 0, or the
// policy is more than 1 nat a token away from the reference. Or a loss (of a recipe without rewards, or of a value
// model) is half as large again as at first. Says each sign once a run, and at its end whether a loss has stayed so
// high. Plain data.
class LearningWatch {
 public:
  // Returns the warnings that this iteration's line is the first to cause.
  std::vector<std::string> add(const base::MetricsRecord& record);
  // Returns all warnings so far.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Says how a loss has diverged by now, "" where none has. A loss has diverged when the mean of its last values is
  // half as high again as the first one and they lie above that by more than twice their spread, in logarithms. The
  // last values are the last ten, or the second half of at most ten. A value model's loss is compared with its squared
  // largest reward where that is more than the first loss.
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
