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

// Looks in a run's metrics, under verl's names, for signs that it cannot learn: for ten iterations running all rewards
// equal, every completion cut, more than a nat a token away from the reference; or a loss that has risen by half. Says
// each once a run. Plain data.
class LearningWatch {
 public:
  // Gives the warnings that this iteration's line is the first to cause.
  std::vector<std::string> add(const base::MetricsRecord& record);
  // These have been said so far.
  const std::vector<std::string>& warnings() const { return warnings_; }

  template <class Self>
  static void fields(Self& self, auto&& field) {
    field("running", self.running_);
    field("first", self.first_losses_);
    field("last", self.last_losses_);
    field("warnings", self.warnings_);
  }

 private:
  void look_at_loss(const base::MetricsRecord& record);
  void say(const std::string& sign, std::string text);

  std::map<std::string, int64_t> running_;  // iterations in a row, by sign; kSaid once it was said
  std::vector<double> first_losses_;
  std::deque<double> last_losses_;
  std::vector<std::string> warnings_;
};

}  // namespace collimate::recipe
